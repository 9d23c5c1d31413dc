"""Import: stores an exported process of another installation with its history, paused."""

from __future__ import annotations

from typing import Any, BinaryIO

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Operation, refuse_errors
from orchestrator.engine.operations.process import process_state
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.transfer.importing import store_import
from orchestrator.engine.transfer.reading import ExportFile
from orchestrator.models import Cause, CauseKind, OperatorAction, ProcessInstance


class ImportProcess(Operation):
    """Stores an export, all of it or nothing. A process that had not ended is paused until a person resumes it."""

    name = "import"
    label = _("Import")
    done = _("Imported.")
    may = _("Can import processes")
    model = ProcessInstance
    asks_reason = False
    by_rest = False  # no page has it: it is a command

    def __call__(self, file: BinaryIO, *, request: ActionRequest) -> OperatorAction:
        """Read the export and store it.

        Args:
            file: the export; the action reads each line once.
            request: the actor.

        Raises:
            OperationRefused: the process is here already, a line is damaged, the running code has another definition,
                or the operator lacks the permission.
        """
        return self._carry_out_once(request, lambda: self._store(file, request))

    def _store(self, file: BinaryIO, request: ActionRequest) -> dict[str, Any]:
        self._check_permission(request)
        now = database_now()
        reading = ExportFile(file)
        cause = Cause.of(CauseKind.OPERATOR, request.key)
        with refuse_errors(lambda error: None):
            instance = store_import(reading, cause, now)
        exported_at, number = reading.head.exported_at, reading.head.processes
        about = {"exported_at": exported_at.isoformat(), "processes": number}
        after = {**process_state(instance), **about}
        return {"instance": instance, "at": now, "after": after}


import_ = register(ImportProcess())
