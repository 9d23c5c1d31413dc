"""Cancel: closes the open steps of a process, and undoes its finished steps where the definition says how."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.processes.outcomes import cancel_outcomes
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage import definitions
from orchestrator.models import IssuedCommand
from orchestrator.text import Text


class CancelProcess(ProcessOperation):
    """Cancels a process: cancels its open steps and sub-processes, and undoes its finished steps, the last one first.

    A process manager leaves its open step. Workers still carry out its issued commands, since other systems may know
    of them; its parked events become unexpected.
    """

    name = "cancel"
    label = _("Cancel process")
    done = _("Cancelled.")
    may = _("Can cancel a process")
    text = _(
        "Ends the process where it stands. Commands that a process manager has issued are still carried out; what the "
        "finished steps of a workflow did is undone in reverse order, where it says how."
    )
    icon = "cancelled"
    tone = "danger"
    rank = 10
    in_bulk = True
    on_whole = True

    def obstacle(self, process: Circumstances) -> str:
        return Text("It is already being undone") if process.undoing else ""

    outcomes = staticmethod(cancel_outcomes)

    def effect(self, press: Press) -> dict[str, Any]:
        instance = press.process
        if not definitions.runs_workflow(instance):
            return _end(ManagerChange(instance, press.cause, press.now))
        change = WorkflowChange.of(instance, press.cause, press.now)
        change.go_on()
        change.undo()
        change.write()
        return {"steps_to_undo": sum(run.finished_at is None for run in change.fresh)}


def _end(change: ManagerChange) -> dict[str, Any]:
    """Ends a process manager where it stands."""
    change.go_on()
    change.end()
    change.write()
    pending = change.instance.commands.exclude(status__in=IssuedCommand.SETTLED)
    return {"commands_still_to_do": pending.count()}


cancel = register(CancelProcess())
