"""Import: a process that was exported elsewhere arrives with its history, and stands paused."""

from __future__ import annotations

from typing import Any, BinaryIO

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.application_code import is_applications
from orchestrator.engine.change.incidents import named
from orchestrator.engine.operations.audit import ActionRequest, audited
from orchestrator.engine.operations.base import Operation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.transfer.arrival import arrived
from orchestrator.engine.transfer.reading import Reading
from orchestrator.exceptions import OperationRefused, ProcessionError
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
        self._check_request(request)

        def carry_out() -> dict[str, Any]:
            self._check_permission(request)
            now = database_now()
            reading = Reading(file)
            cause = Cause.of(CauseKind.OPERATOR, request.key)
            instance = self._arrived(reading, cause, now)
            after = {
                "status": str(instance.status),
                "step": instance.step,
                "revision": instance.revision,
                "exported_at": reading.head.exported_at.isoformat(),
                "processes": reading.head.processes,
            }
            return {"instance": instance, "at": now, "after": after}

        return audited(self.name, request, carry_out, {})

    def _arrived(self, reading: Reading, cause: Cause, now: Any) -> ProcessInstance:
        """Has it arrive; what the engine or the application's code says against it becomes the refusal."""
        try:
            return arrived(reading, cause, now)
        except OperationRefused:
            raise
        except ProcessionError as error:
            raise OperationRefused(str(error)) from None
        except Exception as error:
            if is_applications(error):
                raise OperationRefused(named(error)) from None
            raise


import_ = register(ImportProcess())
