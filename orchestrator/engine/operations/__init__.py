"""What operators can do with processes and events. How each is checked and recorded is in `audit` and `acting`."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.engine.change import incidents
from orchestrator.engine.change.change import Change
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations.audit import PERMISSIONS, ActionRequest
from orchestrator.engine.operations.base import on_event, on_instance
from orchestrator.engine.operations.cancel import cancel
from orchestrator.engine.operations.restart import restart
from orchestrator.engine.operations.resume import resume
from orchestrator.engine.operations.retry import (
    try_commands_again,
    try_events_again,
    try_steps_again,
)
from orchestrator.engine.operations.steps import decide, redo, skip
from orchestrator.engine.operations.why_not import (
    REASONS,
    Circumstances,
    is_workflow,
    why_not,
)
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.tables import events
from orchestrator.exceptions import PermissionMissing
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    Verdict,
)
from orchestrator.queue import ring_after_commit

__all__ = [
    "PERMISSIONS",
    "ActionRequest",
    "cancel",
    "decide",
    "discard",
    "escalate",
    "possible",
    "redeliver",
    "redo",
    "restart",
    "resume",
    "retry",
    "skip",
]


def possible(instance: ProcessInstance, user: Any) -> dict[str, str]:
    """For each action on a process: "" if it can be done now, else why not."""
    found = Circumstances(instance)
    return {
        action: ("" if user.has_perm(PERMISSIONS[action]) else str(PermissionMissing()))
        or why_not(action, instance, found)
        for action in REASONS
    }


def retry(instance_id: UUID, *, request: ActionRequest) -> OperatorAction:
    """Tries again now whatever failed, or waits for another attempt, in a process.

    Raises:
        OperationRefused: nothing has failed, the page is stale, or the operator may not.
    """

    def effect(instance: ProcessInstance, now: datetime) -> None:
        cause = Cause.of(CauseKind.OPERATOR, request.key)
        if is_workflow(instance):
            flow = WorkflowChange.of(instance, cause, now)
            try_steps_again(flow)
            move: Change = flow
        else:
            move = Change(instance, cause, now)
            try_commands_again(move)
        try_events_again(move)
        move.write()
        for rows in (instance.commands, instance.events, instance.step_runs):
            for queue in rows.values_list("queue", flat=True).distinct():
                ring_after_commit(queue)

    return on_instance("retry", instance_id, request, effect)


def escalate(instance_id: UUID, *, request: ActionRequest) -> OperatorAction:
    """Raises a process's escalation level, for everybody to see.

    Raises:
        OperationRefused: the process has ended, the page is stale, or the operator may not.
    """

    def effect(instance: ProcessInstance, now: datetime) -> None:
        move = Change(instance, Cause.of(CauseKind.OPERATOR, request.key), now)
        move.escalate()
        move.write()

    return on_instance("escalate", instance_id, request, effect)


def redeliver(event_pk: int, *, request: ActionRequest) -> OperatorAction:
    """Offers an event to its process again, with fresh patience.

    Raises:
        OperationRefused: the event was settled meanwhile, or the operator may not.
    """

    def effect(
        event: InboxEvent, instance: ProcessInstance | None, now: datetime
    ) -> None:
        values = {
            "verdict": Verdict.RECEIVED,
            "wake_at": now,
            "attempt": 0,
            "owner": "",
            "patience_until": None,
        }
        _settle_event(
            event, instance, now, values, "redelivered by an operator", request
        )
        ring_after_commit(event.queue)

    return on_event("redeliver", event_pk, request, effect)


def discard(event_pk: int, *, request: ActionRequest) -> OperatorAction:
    """Puts an event aside for good; it stays in the inbox with this verdict.

    Raises:
        OperationRefused: the event was settled meanwhile, or the operator may not.
    """

    def effect(
        event: InboxEvent, instance: ProcessInstance | None, now: datetime
    ) -> None:
        values = {
            "verdict": Verdict.DISCARDED,
            "wake_at": None,
            "owner": "",
            "handled_at": now,
        }
        _settle_event(event, instance, now, values, "discarded by an operator", request)

    return on_event("discard", event_pk, request, effect)


def _settle_event(
    event: InboxEvent,
    instance: ProcessInstance | None,
    now: datetime,
    values: dict[str, Any],
    resolution: str,
    request: ActionRequest,
) -> None:
    marks = [
        events.update(values, {"id": event.pk, "verdict": event.verdict}),
        incidents.resolved(resolution, now, event_id=event.pk),
    ]
    if instance is not None and instance.status in TROUBLED:
        move = Change(instance, Cause.of(CauseKind.OPERATOR, request.key), now)
        move.mark(*marks)
        move.write()
    else:
        send(marks)
