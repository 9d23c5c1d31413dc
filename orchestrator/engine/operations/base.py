"""Carrying an operator's action out on one locked process or event: what is stale or impossible is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.engine.operations.audit import ActionRequest, audited
from orchestrator.engine.operations.why_not import what_changed, why_not
from orchestrator.engine.storage.tables import events, instances
from orchestrator.exceptions import (
    LeaseLost,
    OperationRefused,
    ProcessionError,
    StaleRevision,
)
from orchestrator.models import InboxEvent, OperatorAction, ProcessInstance, Verdict

Effect = Callable[[ProcessInstance, datetime], dict[str, Any] | None]
"""Changes a locked process; what it returns is told in the audit row beside what the process looks like after it."""

EventEffect = Callable[[InboxEvent, ProcessInstance | None, datetime], None]


def on_instance(
    action: str,
    instance_id: UUID,
    request: ActionRequest,
    effect: Effect,
    *,
    with_parent: bool = False,
) -> OperatorAction:
    """Does something to a process.

    Args:
        action: its name.
        instance_id: the process.
        request: who wants it, and what the page showed.
        effect: what is done.
        with_parent: whether the process that this one is a part of is locked too, first as always.

    Raises:
        OperationRefused: it cannot be done, the page is stale, or the operator may not.
    """

    def carry_out() -> dict[str, Any]:
        if with_parent:
            _lock_parent(instance_id)
        instance, now = instances.lock(instance_id)
        if instance is None:
            raise OperationRefused(f"there is no process {instance_id}")
        _check(action, instance, request)
        before = _shown(instance)
        told = _done(effect, instance, now)
        after = {**_shown(instance), **told}
        return {"instance": instance, "at": now, "before": before, "after": after}

    return audited(action, request, carry_out, {"instance_id": instance_id})


def _check(action: str, instance: ProcessInstance, request: ActionRequest) -> None:
    """Refuses what is stale or impossible.

    Raises:
        StaleRevision: the page showed another revision.
        OperationRefused: it cannot be done now.
    """
    if request.expected_revision not in (None, instance.revision):
        raise StaleRevision(what_changed(instance, request.expected_revision))
    if reason := why_not(action, instance):
        raise OperationRefused(reason)


def _lock_parent(instance_id: UUID) -> None:
    process = ProcessInstance.objects.filter(pk=instance_id)
    parent = process.values_list("parent_id", flat=True).first()
    if parent is not None:
        instances.lock(parent)


def _done(effect: Effect, instance: ProcessInstance, now: datetime) -> dict[str, Any]:
    """Carries an effect out; what the engine says against it becomes the refusal."""
    try:
        return effect(instance, now) or {}
    except OperationRefused:
        raise
    except LeaseLost:
        raise StaleRevision(
            "A worker has just moved this process on: look again, and press again if it is still wanted"
        ) from None
    except ProcessionError as error:
        raise OperationRefused(str(error)) from None


def on_event(
    action: str, event_pk: int, request: ActionRequest, effect: EventEffect
) -> OperatorAction:
    """Does something to an event that nothing has taken.

    Raises:
        OperationRefused: the event was settled meanwhile, or the operator may not.
    """

    def carry_out() -> dict[str, Any]:
        rows = InboxEvent.objects.filter(pk=event_pk)
        process_id = rows.values_list("process_id", flat=True).first()
        instance = instances.lock(process_id)[0] if process_id else None
        event, now = events.lock(event_pk)
        if event is None:
            raise OperationRefused(f"there is no event {event_pk}")
        _check_event(event)
        before = {"verdict": event.verdict}
        effect(event, instance, now)
        after = {"verdict": rows.values_list("verdict", flat=True).get()}
        about = {"event": event, "instance": instance, "at": now}
        return {**about, "before": before, "after": after}

    return audited(action, request, carry_out, {"event_id": event_pk})


def _check_event(event: InboxEvent) -> None:
    """Refuses what is settled.

    Raises:
        StaleRevision: something has taken the event.
    """
    if event.verdict not in (*InboxEvent.PROBLEMS, Verdict.PARKED):
        raise StaleRevision(
            f"{event.type} was settled meanwhile: {Verdict(event.verdict).label}"
        )


def _shown(instance: ProcessInstance) -> dict[str, Any]:
    return {
        "status": str(instance.status),
        "step": instance.step,
        "revision": instance.revision,
        "escalation_level": instance.escalation_level,
    }
