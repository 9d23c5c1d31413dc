"""Export: a process with its sub-processes and their whole history is written as lines of JSON."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator import secret_names
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Operation, locked_process
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.reveal_secrets import reveal
from orchestrator.engine.transfer.writing import Expect, Write, written
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.snapshot import snapshot
from orchestrator.text import Text

UNWRITTEN = Text("it could not be written whole: %(why)s")


class ExportProcess(Operation):
    """Writes a process as of one moment; it changes nothing and holds no locks."""

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
            self._check_somewhere(request)
            with snapshot():
                self._check_whole(instance_id, request)
                told = written(instance_id, write, expect)
        except OperationRefused as error:
            refusal = error
        except OSError as error:
            refusal, unwritten = (
                OperationRefused(UNWRITTEN.filled(error.strerror)),
                error,
            )

        def carry_out() -> dict[str, Any]:
            if refusal is not None:
                raise refusal
            instance, now = locked_process(instance_id)  # it may be removed
            return {"instance": instance, "at": now, "after": told}

        try:
            return self._audited(request, carry_out, {"instance_id": instance_id})
        except OperationRefused:
            if unwritten is not None:
                raise unwritten from None
            raise

    def _check_whole(self, instance_id: UUID, request: ActionRequest) -> None:
        """Checks the permission for a process and its sub-processes, with their secret fields.

        The export contains the secrets: its checksums cover them.

        Raises:
            OperationRefused: the operator may not.
        """
        actor = request.actor
        if self.definitions(actor) is None and reveal.definitions(actor) is None:
            return
        level = [instance_id]
        while level:
            tree = ProcessInstance.objects.filter(pk__in=level).order_by()
            asked = tree.values_list("name", "definition__secrets").distinct()
            for name, secrets in asked:
                self._check_permission(request, name)
                hides = secrets or secret_names.code_secrets(name)
                if hides and reveal.forbidden(actor, name):
                    raise OperationRefused(
                        Text(
                            "it has secret fields: whoever exports it must be allowed to have them shown"
                        )
                    )
            parts = ProcessInstance.objects.filter(parent__in=level).order_by()
            level = list(parts.values_list("pk", flat=True))


export = register(ExportProcess())
