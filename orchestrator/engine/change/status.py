"""The status of a live process, and pausing it: waiting work keeps the time that it has left, and no new work starts.

Claimed work goes on to its end. Work that becomes ready in the meantime is suspended when its process is written, or at
the latest when a worker claims it. Issued commands are carried out; those of an imported process wait for its resume.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db.models import (
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    Value,
)
from django.db.models.expressions import Combinable

from orchestrator.models import (
    Checkpoint,
    CommandStatus,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Verdict,
)

TROUBLED = (Status.RETRYING, Status.FAILED)


def status_of(instance: ProcessInstance, *, troubled: bool = True) -> Status:
    """Return the status of a live process, from its stored steps, commands and events.

    Args:
        instance: the process.
        troubled: whether an event of it may be in trouble: only then a workflow's events are read.
    """
    open_runs = instance.step_runs.filter(finished_at=None).exclude(kind="")
    steps = set(open_runs.values_list("status", flat=True).distinct())
    if steps:
        events = _troubled_events(instance) if troubled else set()
        return _of_steps(steps, events)
    commands = instance.commands.all()
    if commands.filter(status=CommandStatus.FAILED).exists():
        return Status.FAILED
    events = _troubled_events(instance)
    if Verdict.FAILED in events:
        return Status.FAILED
    if instance.incidents.open().filter(kind="deadline_failed").exists():
        return Status.FAILED
    if commands.filter(status=CommandStatus.RETRYING).exists():
        return Status.RETRYING
    deadlines = instance.step_runs.filter(finished_at=None, wake_at__isnull=False)
    again = events or deadlines.exclude(error="").exists()
    return Status.RETRYING if again else Status.WAITING


def _troubled_events(instance: ProcessInstance) -> set[str]:
    """The verdicts of the process's events that have failed, or wait for another attempt."""
    again = Q(verdict=Verdict.RECEIVED, wake_at__isnull=False) & ~Q(error="")
    events = InboxEvent.objects.filter(Q(verdict=Verdict.FAILED) | again)
    mine = events.filter(process=instance).order_by()
    return set(mine.values_list("verdict", flat=True).distinct())


def _of_steps(steps: set[str], events: set[str]) -> Status:
    """The status of a workflow, from the statuses of its open steps and the verdicts of its troubled events."""
    if StepStatus.FAILED in steps or Verdict.FAILED in events:
        return Status.FAILED
    if StepStatus.RETRYING in steps or events:
        return Status.RETRYING
    if steps & {StepStatus.READY, StepStatus.RUNNING}:
        return Status.RUNNING
    return Status.WAITING


WAITING = (Verdict.RECEIVED, Verdict.PARKED)
"""Events that nothing has settled."""


def suspend_work(process_id: UUID, now: datetime) -> None:
    """Suspend unclaimed work, with the time left until it is due; a parked event keeps the rest of its patience."""
    runs, events = _waiting(process_id, owner="", wake_at__isnull=False)
    parked = events.filter(verdict=Verdict.PARKED)
    parked.update(remaining=_left("patience_until", now), wake_at=None)
    for rows in (runs, events):
        rows.update(remaining=_left("wake_at", now), wake_at=None)


def resume_work(process_id: UUID, now: datetime) -> set[str]:
    """Resume suspended work, with the time that it had left; the patience of a parked event goes on likewise.

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
    """Make waiting commands due: only those of an imported process wait. Return their queues."""
    rows = IssuedCommand.objects.filter(instance=process_id, wake_at=None)
    waiting = rows.filter(status__in=IssuedCommand.UNDER_WAY)
    queues = set(waiting.values_list("queue", flat=True).distinct())
    if queues:
        waiting.update(wake_at=now)
    return queues


def paused_time(process_id: UUID, since: datetime) -> timedelta:
    """Return how long a process was paused since a moment; it is paused neither then nor now."""
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
