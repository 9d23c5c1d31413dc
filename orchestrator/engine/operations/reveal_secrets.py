"""Reveal: a person has the secrets of one process shown, once, with a reason that is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator import secret_names
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import LockedOperation, Press, locked_process
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import OperationRefused
from orchestrator.grants import definition_name_of
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.text import Text

GOOD_FOR = timedelta(minutes=5)
"""How long the same request shows the secrets again, for a page that is reloaded."""


class RevealSecrets(LockedOperation):
    """Allows one look at the secrets of a process. Nothing of it is changed; what was seen is not written down."""

    name = "reveal"
    label = _("Show secrets")
    done = _("Shown.")
    may = _("Can have secret fields shown")
    text = _(
        "What is secret in this process is shown to you on a page of your own. "
        "The audit keeps that you have looked, and why."
    )
    model = ProcessInstance
    named_by = "instance_id"
    by_definition = True
    by_rest = False
    permitted_as = "reveal_secrets"

    def __call__(
        self, key: UUID, *given: Any, request: ActionRequest
    ) -> OperatorAction:
        """Carries it out.

        Args:
            key: of the process.
            given: nothing.
            request: who wants it, and why.

        Raises:
            OperationRefused: the operator may not, or has pressed long ago.
        """
        found = super().__call__(key, *given, request=request)
        # A repeated request gets its first answer, even without the permission.
        self._check_permission(request, definition_name_of(found.instance))
        if database_now() - found.at > GOOD_FOR:
            raise OperationRefused(Text("that look is over: say again why"))
        return found

    def _locked(
        self, key: UUID, request: ActionRequest, *given: Any
    ) -> tuple[Press, ProcessInstance]:
        _, now = locked_process(key)  # else it may be removed meanwhile
        rows = ProcessInstance.objects.select_related("definition")
        instance = rows.defer("data", "definition__graph").get(pk=key)
        self._check_permission(request, instance.name)
        return Press(request, instance, now), instance

    def _do(self, press: Press, row: ProcessInstance, *given: Any) -> dict[str, Any]:
        fields = sorted(secret_names.process_secrets(row).names)
        return {"instance": row, "after": {"fields": fields}}


reveal = register(RevealSecrets())
