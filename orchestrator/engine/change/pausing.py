"""Letting a process stand still: what waits for a time keeps what was left of it, and nothing new starts.

What is claimed comes to its end. Work that becomes ready meanwhile is put to rest when its process is written, or, at
the latest, when a worker claims it. Commands that were issued are carried out; those of a process that was imported
wait until it is resumed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Value
from django.db.models.expressions import Combinable

from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    Status,
    StepRun,
    Verdict,
)

WAITING = (Verdict.RECEIVED, Verdict.PARKED)
"""Events that nothing has settled."""


def rest(process_id: UUID, now: datetime) -> None:
    """Puts unclaimed work to rest, with the time that is left until it would wake; of a parked event its patience."""
    runs, events = _waiting(process_id, owner="", wake_at__isnull=False)
    parked = events.filter(verdict=Verdict.PARKED)
    parked.update(remaining=_left("patience_until", now), wake_at=None)
    for rows in (runs, events):
        rows.update(remaining=_left("wake_at", now), wake_at=None)


def wake(process_id: UUID, now: datetime) -> set[str]:
    """Lets what rests wake when what was left is over; people are told of a parked event as much later.

    Returns:
        The queues that may have work now.
    """
    due = ExpressionWrapper(_at(now) + F("remaining"), output_field=DateTimeField())
    runs, events = _waiting(process_id, remaining__isnull=False)
    queues = {
        *runs.values_list("queue", flat=True).distinct(),
        *events.values_list("queue", flat=True).distinct(),
    }
    parked = events.filter(verdict=Verdict.PARKED)
    parked.update(patience_until=due)
    for rows in (runs, events):
        rows.update(wake_at=due, remaining=None)
    return queues | _carry_out(process_id, now)


def _carry_out(process_id: UUID, now: datetime) -> set[str]:
    """Commands wait only in a process that was imported, for it to be resumed."""
    rows = IssuedCommand.objects.filter(instance=process_id, wake_at=None)
    waiting = rows.filter(status__in=IssuedCommand.UNDER_WAY)
    queues = set(waiting.values_list("queue", flat=True).distinct())
    if queues:
        waiting.update(wake_at=now)
    return queues


def stood_still(process_id: UUID, since: datetime) -> timedelta:
    """How long a process stood still since a moment at which it did not; it does not now."""
    rows = Checkpoint.objects.filter(instance=process_id, at__gte=since)
    told = rows.order_by("revision").values_list("status", "at")
    pauses = [
        after - at
        for (status, at), (_, after) in pairwise(told)
        if status == Status.PAUSED
    ]
    return sum(pauses, timedelta(0))


def _waiting(process_id: UUID, **conditions: Any) -> tuple[Any, Any]:
    """The open visits and the unsettled events of a process."""
    runs = StepRun.objects.filter(instance=process_id, finished_at=None)
    events = InboxEvent.objects.filter(process=process_id, verdict__in=WAITING)
    return runs.filter(**conditions), events.filter(**conditions)


def _left(column: str, now: datetime) -> Combinable:
    return ExpressionWrapper(F(column) - _at(now), output_field=DurationField())


def _at(now: datetime) -> Combinable:
    return Value(now, output_field=DateTimeField())
