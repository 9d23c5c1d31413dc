"""The labels of actions in the audit."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import BulkOperation

OTHER_ACTIONS = {"prune": gettext_lazy("Prune")}
"""The labels of actions in the audit that are no buttons."""

OTHER_LABELS = {
    "assign_failures": gettext_lazy("%(action)s (failures)"),
    "skip_command": gettext_lazy("%(action)s (command)"),
}
"""The labels of actions whose button is named as that of another action."""


def action_names() -> list[tuple[str, str]]:
    """Return the actions to filter by, with their labels."""
    known = [(name, action_word(name)) for name in (*OPERATIONS, *OTHER_ACTIONS)]
    return sorted(known, key=lambda one: one[1])


def action_word(name: str) -> str:
    """Return the label of an action, which no other action has."""
    operation = OPERATIONS.get(name)
    if operation is None:
        return str(OTHER_ACTIONS.get(name, name))
    if operation.model is BulkOperation:
        return _("%(action)s (bulk operation)") % {"action": operation.label}
    words = OTHER_LABELS.get(name, "%(action)s")
    return str(words) % {"action": operation.label}
