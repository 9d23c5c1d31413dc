"""Cancelling a process: what is open is closed, what was done is undone as far as its definition says how."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.engine.change import undoing
from orchestrator.engine.change.change import Transition, resolved_deadline
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import on_instance
from orchestrator.engine.operations.why_not import is_workflow
from orchestrator.engine.steps.waits import flow_of
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import (
    Cause,
    CauseKind,
    CommandStatus,
    OperatorAction,
    ProcessInstance,
    Status,
    StepStatus,
)


def cancel(instance_id: UUID, *, request: ActionRequest) -> OperatorAction:
    """Cancels a process: open steps and sub-processes are cancelled, finished steps undone, the last one first.

    Of a process manager the open step is left. Commands that it has issued are still carried out, since other systems
    may know of them; events that wait for it are shown as unexpected.

    Raises:
        OperationRefused: it has ended or is being undone, the page is stale, or the operator may not.
    """

    def effect(instance: ProcessInstance, now: datetime) -> dict[str, Any]:
        cause = Cause.of(CauseKind.OPERATOR, request.key)
        if not is_workflow(instance):
            return _end(Transition(instance, cause, now))
        flow = flow_of(instance, cause, now)
        undoing.begin(flow)
        flow.write()
        return {"steps_to_undo": sum(run.finished_at is None for run in flow.fresh)}

    return on_instance("cancel", instance_id, request, effect)


def _end(move: Transition) -> dict[str, Any]:
    """Ends a process manager where it stands."""
    instance = move.instance
    instance.status, instance.finished_at = Status.CANCELLED, move.now
    left = {
        "status": StepStatus.CANCELLED,
        "finished_at": move.now,
        "wake_at": None,
        "owner": "",
    }
    mine = {"instance_id": instance.pk, "finished_at": None}
    move.mark(step_runs.update(left, mine, rows=None))
    move.mark(resolved_deadline(instance, move.now))
    move.steps = {instance.step: StepStatus.CANCELLED}
    move.write()
    pending = instance.commands.exclude(status=CommandStatus.DONE)
    return {"commands_still_to_do": pending.count()}
