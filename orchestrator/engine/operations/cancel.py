"""Cancelling a process: what is open is closed, what was done is undone as far as its definition says how."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import on_instance
from orchestrator.engine.operations.why_not import is_workflow
from orchestrator.models import (
    Cause,
    CauseKind,
    CommandStatus,
    OperatorAction,
    ProcessInstance,
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
            return _end(ManagerChange(instance, cause, now))
        change = WorkflowChange.of(instance, cause, now)
        change.undo()
        change.write()
        return {"steps_to_undo": sum(run.finished_at is None for run in change.fresh)}

    return on_instance("cancel", instance_id, request, effect)


def _end(change: ManagerChange) -> dict[str, Any]:
    """Ends a process manager where it stands."""
    change.end()
    change.write()
    pending = change.instance.commands.exclude(status=CommandStatus.DONE)
    return {"commands_still_to_do": pending.count()}
