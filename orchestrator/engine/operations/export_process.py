"""Export: a process with its sub-processes and their whole history is written as lines of JSON."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.audit import ActionRequest, audited
from orchestrator.engine.operations.base import Operation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.transfer.writing import Write, written
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.snapshot import snapshot


class ExportProcess(Operation):
    """Writes a process, as of one moment; nothing of it is changed, and nobody waits for it."""

    name = "export"
    label = _("Export")
    done = _("Exported.")
    may = _("Can export a process with all its data")
    model = ProcessInstance
    asks_reason = False

    def __call__(
        self, instance_id: UUID, write: Write, *, request: ActionRequest
    ) -> OperatorAction:
        """Carries it out.

        Args:
            instance_id: the process.
            write: is given each line; what it was given before a refusal or an error is worth nothing.
            request: who wants it.

        Raises:
            OperationRefused: it cannot be exported now, or the operator may not.
        """
        self._check_request(request)
        refusal, told = None, {}
        try:
            self._check_permission(request)
            with snapshot():
                told = written(instance_id, write)
        except OperationRefused as error:
            refusal = error

        def carry_out() -> dict[str, Any]:
            if refusal is not None:
                raise refusal
            instance = ProcessInstance.objects.get(pk=instance_id)
            return {"instance": instance, "at": database_now(), "after": told}

        return audited(self.name, request, carry_out, {"instance_id": instance_id})


export = register(ExportProcess())
