"""What the audit calls actions."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import (
    BulkOperation,
)

OTHER_ACTIONS = {"prune": gettext_lazy("Prune")}
"""What stands in the audit and is no button: the label of each."""


def action_names() -> list[tuple[str, str]]:
    """The actions that can be looked for, with what they are called."""
    known = [(name, action_word(name)) for name in (*OPERATIONS, *OTHER_ACTIONS)]
    return sorted(known, key=lambda one: one[1])


def action_word(name: str) -> str:
    """What an action is called; of one on bulk operations that it is such a one."""
    operation = OPERATIONS.get(name)
    if operation is None:
        return str(OTHER_ACTIONS.get(name, name))
    if operation.model is BulkOperation:
        return _("%(action)s (bulk operation)") % {"action": operation.label}
    return str(operation.label)
