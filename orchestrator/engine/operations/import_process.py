"""Import: a process that was exported elsewhere arrives with its history, and stands paused."""

from __future__ import annotations

from typing import Any, BinaryIO

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Operation, refusing, shown
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.transfer.arrival import arrived
from orchestrator.engine.transfer.reading import Reading
from orchestrator.models import Cause, CauseKind, OperatorAction, ProcessInstance


class ImportProcess(Operation):
    """Stores what was exported, all of it or nothing. What had not ended stands still until it is resumed."""

    name = "import"
    label = _("Import")
    done = _("Imported.")
    may = _("Can import processes")
    model = ProcessInstance
    asks_reason = False
    by_rest = False  # no page has it: it is a command

    def __call__(self, file: BinaryIO, *, request: ActionRequest) -> OperatorAction:
        """Carries it out.

        Args:
            file: the export, of which each line is read once.
            request: who wants it.

        Raises:
            OperationRefused: it is here already, is not what was written, or the running code has another definition;
                or the operator may not.
        """

        def carry_out() -> dict[str, Any]:
            self._check_permission(request)
            now = database_now()
            reading = Reading(file)
            cause = Cause.of(CauseKind.OPERATOR, request.key)
            with refusing(lambda error: None):
                instance = arrived(reading, cause, now)
            exported_at, number = reading.head.exported_at, reading.head.processes
            about = {"exported_at": exported_at.isoformat(), "processes": number}
            return {
                "instance": instance,
                "at": now,
                "after": {**shown(instance), **about},
            }

        return self._audited(request, carry_out)


import_ = register(ImportProcess())
