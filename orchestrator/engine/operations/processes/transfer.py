"""Export and import: a process with its sub-processes and their whole history as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator import secret_names
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Operation, refuse_errors
from orchestrator.engine.operations.process import lock_process, process_state
from orchestrator.engine.operations.processes.reveal_secrets import reveal
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.transfer.exporting import Expect, Write, write_export
from orchestrator.engine.transfer.importing import store_import
from orchestrator.engine.transfer.reading import ExportFile
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Cause, CauseKind, OperatorAction, ProcessInstance
from orchestrator.snapshot import snapshot
from orchestrator.text import Text

UNWRITTEN = Text("it could not be written whole: %(why)s")
HIDDEN = Text(
    "it has secret fields: its export needs the permission to have them shown",
    was="it has secret fields: whoever exports it must be allowed to have them shown",
)


class ExportProcess(Operation):
    """Writes a process as of one moment; it changes nothing and keeps no locks."""

    name = "export"
    label = _("Export")
    done = _("Exported.")
    may = _("Can export a process with all its data")
    model = ProcessInstance
    by_definition = True
    asks_reason = False
    by_rest = False  # no page has it: it is a command

    def __call__(
        self,
        instance_id: UUID,
        write: Write,
        expect: Expect | None = None,
        *,
        request: ActionRequest,
    ) -> OperatorAction:
        """Write the export.

        Args:
            instance_id: the process.
            write: called with each line; lines before a refusal or an error are no export.
            expect: called with the number of rows, before the first line.
            request: the actor.

        Raises:
            OperationRefused: the process allows no export now, or the operator lacks the permission.
            OSError: a write has failed; the audit has a row of it, since others may have read a part of the export.
        """
        self._check_request(request)
        facts: dict[str, Any] = {}
        failure: OperationRefused | OSError | None = None
        try:
            self._check_for_some(request)
            with snapshot():
                self._check_whole(instance_id, request)
                facts = write_export(instance_id, write, expect)
        except (OperationRefused, OSError) as error:
            failure = error
        try:
            return self._audit(instance_id, request, facts, failure)
        except OperationRefused:
            if isinstance(failure, OSError):
                raise failure from None
            raise

    def _audit(
        self,
        pk: UUID,
        request: ActionRequest,
        facts: dict[str, Any],
        failure: OperationRefused | OSError | None,
    ) -> OperatorAction:
        """Stores the audit row of an export, or of its failure.

        Raises:
            OperationRefused: the export has failed.
        """

        def carry_out() -> dict[str, Any]:
            if isinstance(failure, OSError):
                raise OperationRefused(UNWRITTEN.filled(failure.strerror))
            if failure is not None:
                raise failure
            instance, now = lock_process(pk)  # it may be gone by now
            return {"instance": instance, "at": now, "after": facts}

        return self._carry_out_once(request, carry_out, {"instance_id": pk})

    def _check_whole(self, pk: UUID, request: ActionRequest) -> None:
        """Checks the permission for a process and its sub-processes, with their secret fields.

        The export contains the secrets: its checksums cover them.

        Raises:
            OperationRefused: the operator lacks the permission for one of them, or for its secrets.
        """
        actor = request.actor
        if self.definitions(actor) is None and reveal.definitions(actor) is None:
            return
        for name, secrets in _definitions_of_tree(pk):
            self._check_permission(request, name)
            hides = secrets or secret_names.code_secrets(name)
            if hides and reveal.forbidden(actor, name):
                raise OperationRefused(HIDDEN)


def _definitions_of_tree(pk: UUID) -> Iterator[tuple[str, Any]]:
    """The names and secret fields of the definitions of a process and its sub-processes, level by level."""
    level = [pk]
    while level:
        tree = ProcessInstance.objects.filter(pk__in=level).order_by()
        yield from tree.values_list("name", "definition__secrets").distinct()
        parts = ProcessInstance.objects.filter(parent__in=level).order_by()
        level = list(parts.values_list("pk", flat=True))


export = register(ExportProcess())


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
