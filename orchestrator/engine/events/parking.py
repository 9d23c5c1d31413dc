"""Parking an event that its process does not take now, for as long as the process lives.

When its patience is over people are told, once; it stays parked, and what they were told resolves itself when it is
taken. Of the parked ones a change of the process offers the oldest that may be taken (`change.offering`). If that is
parked again after all, because a guard does not hold, the next one behind it that would be taken is offered.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from orchestrator.engine import inbox
from orchestrator.engine.change import offering
from orchestrator.engine.change.announcements import announce_event
from orchestrator.engine.events.verdicts import cleared, put_aside, turned_away, verdict
from orchestrator.engine.storage.batch import Statement, send
from orchestrator.engine.storage.tables import instances
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Verdict
from orchestrator.registry import Declared

LOOK = 500
"""How many parked events one look goes through."""

Takes = Callable[[InboxEvent], bool]
"""Whether the process would take an event now."""


def park(
    event: InboxEvent,
    instance: ProcessInstance,
    definition: Declared,
    takes: Takes,
    now: datetime,
) -> None:
    """Keeps an event that its process does not take now; when its patience is over people are told."""
    until = event.patience_until or now + inbox.patience(definition)
    if until > now:
        kept = {"wake_at": until, "patience_until": until, "attempt": 0}
        marks = [
            verdict(event, Verdict.PARKED, now, instance, **kept),
            *cleared(event, instance, now),
        ]
    else:
        marks = _told(event, instance, until, now)
    marks += _counted(event, instance, 1)
    put_aside(event, instance, [*marks, *behind(event, instance, takes, now)], now)


def _told(
    event: InboxEvent, instance: ProcessInstance, until: datetime, now: datetime
) -> list[Statement]:
    """Parks an event whose patience is over; people are told unless they know."""
    kept = {"patience_until": until, "attempt": 0}
    about = Incident.objects.open().filter(event=event.pk)
    if about.filter(kind=Incident.Kind.UNEXPECTED_EVENT).exists():
        return [
            verdict(event, Verdict.PARKED, now, instance, error=event.error, **kept)
        ]
    reason = f"{event.type} is not expected in step {instance.step}"
    return turned_away(event, instance, Verdict.PARKED, reason, now, **kept)


def rest(
    event: InboxEvent, instance: ProcessInstance, definition: Declared, now: datetime
) -> None:
    """Keeps an event whose process stands still, with the patience it has left."""
    if event.verdict == Verdict.RECEIVED and event.error:  # between two attempts
        left = {"remaining": timedelta(0), "attempt": event.attempt - 1}
        undecided = {"error": event.error, "handled_at": None}
        marks = [verdict(event, Verdict.RECEIVED, now, instance, **left, **undecided)]
    else:
        until = event.patience_until or now + inbox.patience(definition)
        kept = {"patience_until": None, "remaining": until - now, "attempt": 0}
        marks = [
            verdict(event, Verdict.PARKED, now, instance, error=event.error, **kept),
            *_counted(event, instance, 1),
        ]
    send(marks)
    announce_event(event)


def leave(
    event: InboxEvent, instance: ProcessInstance, takes: Takes, now: datetime
) -> list[Statement]:
    """What follows when an event is settled that was parked and has moved nothing."""
    return [*_counted(event, instance, 0), *behind(event, instance, takes, now)]


def turn_away_late(event: InboxEvent, instance: ProcessInstance, now: datetime) -> None:
    """Shows an event whose process has ended; another that was parked until then is next."""
    if event.verdict == Verdict.PARKED:
        reason = f"{event.type} was parked until the process had ended"
    else:
        reason = f"{event.type} came after the process had ended"
    marks = turned_away(event, instance, Verdict.UNEXPECTED, reason, now)
    if event.verdict == Verdict.PARKED:
        marks += _counted(event, instance, 0)
        marks.append(offering.left_over(instance.pk, 1, now))
    put_aside(event, instance, marks, now)


def behind(
    event: InboxEvent, instance: ProcessInstance, takes: Takes, now: datetime
) -> list[Statement]:
    """Offers the next parked event that the process would take, behind one that was offered and has moved nothing."""
    if not offering.is_offered(event):
        return []
    rows = InboxEvent.objects.parked().filter(process=instance.pk, pk__gt=event.pk)
    types = offering.awaited(instance)
    if types is not None:
        rows = rows.filter(type__in=types)
    found = list(rows.order_by("pk")[:LOOK])
    taken = next((row for row in found if takes(row)), None)
    if taken is None and len(found) == LOOK:
        taken = found[-1]  # from which the look goes on
    return [offering.one(taken, now)] if taken is not None else []


def _counted(
    event: InboxEvent, instance: ProcessInstance, after: int
) -> list[Statement]:
    """Counts an event among the parked ones of its process: `after` is 1 if it is parked now, else 0."""
    change = after - (event.verdict == Verdict.PARKED)
    if not change:
        return []
    instance.parked += change
    return [instances.update({"parked": instance.parked}, {"id": instance.pk})]
