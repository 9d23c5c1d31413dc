"""Reveal: shows a person the secrets of one process, once; the audit keeps the reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator import secret_names
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import LockedOperation, Press
from orchestrator.engine.operations.process import lock_process
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import database_now
from orchestrator.exceptions import OperationRefused
from orchestrator.grants import definition_name_of
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.text import Text

GOOD_FOR = timedelta(minutes=5)
"""The time in which the same request shows the secrets again, for a reload of the page."""


class RevealSecrets(LockedOperation):
    """Allows one look at the secrets of a process. It changes nothing; the audit row has no values."""

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
        """Allow the look.

        Args:
            key: of the process.
            given: no values.
            request: the actor and the reason.

        Raises:
            OperationRefused: the operator lacks the permission, or the first press of the key was long ago.
        """
        found = super().__call__(key, *given, request=request)
        # The permission of now counts, also for a repetition that gets its first answer.
        self._check_permission(request, definition_name_of(found.instance))
        if database_now() - found.at > GOOD_FOR:
            raise OperationRefused(Text("that look is over: say again why"))
        return found

    def _lock(
        self, key: UUID, request: ActionRequest, *given: Any
    ) -> tuple[Press, ProcessInstance]:
        _, now = lock_process(key)  # without a lock it may be removed meanwhile
        rows = ProcessInstance.objects.select_related("definition")
        instance = rows.defer("data", "definition__graph").get(pk=key)
        self._check_permission(request, instance.name)
        return Press(request, instance, now), instance

    def _do(self, press: Press, row: ProcessInstance, *given: Any) -> dict[str, Any]:
        fields = sorted(secret_names.process_secrets(row).names)
        return {"instance": row, "after": {"fields": fields}}


reveal = register(RevealSecrets())
