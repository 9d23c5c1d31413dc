"""What becomes of a claimed event, written under its fence."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from orchestrator.engine.change import incidents
from orchestrator.engine.change.announcements import announce_event
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.claims.lines import followers
from orchestrator.engine.storage.batch import Statement, send
from orchestrator.engine.storage.tables import events
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    Incident,
    ProcessInstance,
    Verdict,
)


def verdict(
    event: InboxEvent,
    outcome: Verdict,
    now: datetime,
    instance: ProcessInstance | None,
    **more: Any,
) -> Statement:
    """Settles a claimed event, if this worker still holds it."""
    values: dict[str, Any] = {
        "verdict": outcome,
        "handled_at": now,
        "wake_at": None,
        "owner": "",
        "error": "",
    }
    if instance is not None:
        values["process_id"] = instance.pk
    return events.update(
        {**values, **more},
        {
            "id": event.pk,
            "owner": event.owner,
            "attempt": event.attempt,
            "verdict": event.verdict,
        },
    )


def cleared(
    event: InboxEvent, instance: ProcessInstance | None, now: datetime
) -> list[Statement]:
    """Resolves what was wrong with an event before, and lets those go on that waited for it."""
    if not event.error:
        return []
    solved = incidents.resolved("handled", now, event_id=event.pk)
    return [solved, *followers(event, instance, now)]


def turned_away(
    event: InboxEvent,
    instance: ProcessInstance | None,
    outcome: Verdict,
    reason: str,
    now: datetime,
    **more: Any,
) -> list[Statement]:
    """Shows an event to people: rejected, unexpected, or parked for longer than its patience."""
    kind = (
        Incident.Kind.REJECTED_EVENT
        if outcome == Verdict.REJECTED
        else Incident.Kind.UNEXPECTED_EVENT
    )
    return [
        verdict(event, outcome, now, instance, error=reason, **more),
        incidents.resolved("seen again", now, event_id=event.pk),
        *incidents.opened(
            kind,
            reason,
            now,
            instance=instance,
            definition=event.target,
            event_id=event.pk,
        ),
        *followers(event, instance, now),
    ]


def put_aside(
    event: InboxEvent, instance: ProcessInstance, marks: list[Statement], now: datetime
) -> None:
    """Settles an event that moves nothing; a process that was in trouble over it shows how it stands without it."""
    troubled = instance.finished_at is None and instance.status in TROUBLED
    if event.error and troubled:
        move = ProcessChange(
            instance, Cause.of(CauseKind.SETTLED, event.pk, instance.revision), now
        )
        move.mark(*marks)
        move.write()
    else:
        send(marks)
    announce_event(event)
