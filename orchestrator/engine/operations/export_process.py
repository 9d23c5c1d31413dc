"""Export: a process with its sub-processes and their whole history is written as lines of JSON."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.audit import ActionRequest, audited
from orchestrator.engine.operations.base import Operation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.transfer.writing import Expect, Write, written
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
        self,
        instance_id: UUID,
        write: Write,
        expect: Expect | None = None,
        *,
        request: ActionRequest,
    ) -> OperatorAction:
        """Carries it out.

        Args:
            instance_id: the process.
            write: is given each line; what it was given before a refusal or an error is worth nothing.
            expect: is told how many rows there are, before the first.
            request: who wants it.

        Raises:
            OperationRefused: it cannot be exported now, or the operator may not.
            OSError: it could not be written; that is audited too, since a part of it is in the world.
        """
        self._check_request(request)
        refusal, told, unwritten = None, {}, None
        try:
            self._check_permission(request)
            with snapshot():
                told = written(instance_id, write, expect)
        except OperationRefused as error:
            refusal = error
        except OSError as error:
            why = f"it could not be written whole: {error.strerror}"
            refusal, unwritten = OperationRefused(why), error

        def carry_out() -> dict[str, Any]:
            if refusal is not None:
                raise refusal
            instance = ProcessInstance.objects.get(pk=instance_id)
            return {"instance": instance, "at": database_now(), "after": told}

        try:
            return audited(self.name, request, carry_out, {"instance_id": instance_id})
        except OperationRefused:
            if unwritten is not None:
                raise unwritten from None
            raise


export = register(ExportProcess())
