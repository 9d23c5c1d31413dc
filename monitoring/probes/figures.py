"""The figures of `/metrics`, each from a bounded query along an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Model
from django.utils import timezone

from monitoring.queries.counts import FEW, MANY, count_by, count_rows
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    Notice,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
    Worker,
)
from orchestrator.setup_status import lease_counts, queue_figures

LAST_MINUTES = timedelta(minutes=5)
"""The maximum age of ended work whose duration counts."""

A_DAY = timedelta(days=1)

NEWEST = 1_000
"""The number of newest visits, and of newest events, whose durations are read."""

CARRIED_OUT = (StepKind.STEP, StepKind.ITEM, StepKind.UNDO)
"""The visits that workers carry out; other visits wait."""

NUMBERED: dict[str, type[Model]] = {
    "transitions": Checkpoint,
    "steps": StepRun,
    "events": InboxEvent,
    "incidents": Incident,
}
"""The kinds of rows whose number is the last key of their table."""


@dataclass(frozen=True)
class Figures:
    """The state of the installation as the database has it now."""

    numbered: dict[str, int]
    """The numbers of transitions, steps, events and incidents ever written."""
    live: dict[tuple[str, str], int]
    """Live processes by definition and status."""
    open_incidents: int
    step_seconds: list[float]
    """The durations of recently ended steps, from when they could begin, sorted."""
    event_seconds: list[float]
    """The times from receipt to verdict of recently handled events, sorted."""
    queues: dict[str, dict[str, Any]]
    """The due work of each queue, its age, and its wakes."""
    leases: dict[str, int]
    """Work that workers hold, by queue."""
    workers: dict[str, int]
    """Living workers by queue."""
    swept_at: datetime | None
    untaken_notices: int
    """Notices with a failed attempt: the engine retries them, or has given them up within the last day.

    A notice without an attempt for a day has a recipient that the settings no longer declare.
    """


def figures() -> Figures:
    """Read all figures, by some dozens of statements."""
    now = timezone.now()
    alive = Worker.objects.alive(now).values_list("queue").annotate(Count("pk"))
    return Figures(
        numbered=_last_keys(),
        live=_live_counts(),
        open_incidents=count_rows(Incident.objects.open(), MANY).number,
        step_seconds=sorted(_step_seconds(now)),
        event_seconds=sorted(_event_seconds(now)),
        queues=queue_figures(),
        leases=lease_counts(),
        workers=dict(alive.order_by()),
        swept_at=Worker.objects.aggregate(at=Max("swept_at"))["at"],
        untaken_notices=_untaken_notices(now),
    )


def _last_keys() -> dict[str, int]:
    """Return the last key that the database gave out for each kind.

    It never falls when rows are removed, and needs no count; it includes the few rows that were rolled back.
    """
    statement = (
        "SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, 'id')::regclass)"
        if connection.vendor == "postgresql"
        else "SELECT max(seq) FROM sqlite_sequence WHERE name = %s"
    )
    found = {}
    with connection.cursor() as cursor:
        for kind, model in NUMBERED.items():
            cursor.execute(statement, [model._meta.db_table])
            found[kind] = cursor.fetchone()[0] or 0
    return found


def _untaken_notices(now: datetime) -> int:
    again = Notice.objects.filter(wake_at__gte=now - A_DAY).exclude(error="")
    given_up = Notice.objects.given_up_since(now - A_DAY)
    return count_rows(again).number + count_rows(given_up).number


def _live_counts() -> dict[tuple[str, str], int]:
    names = set(Definition.objects.values_list("name", flat=True))
    parts = [ProcessInstance.objects.live().filter(name=name) for name in sorted(names)]
    cap = max(MANY // max(len(parts), 1), FEW)
    return {
        (name, status): number
        for name, status, number in count_by(parts, "name", "status", cap=cap)
    }


def _step_seconds(now: datetime) -> Iterator[float]:
    newest = StepRun.objects.order_by("-pk").values_list(
        "kind", "status", "started_at", "finished_at"
    )
    for kind, status, started_at, finished_at in newest[:NEWEST]:
        done = kind in CARRIED_OUT and status == StepStatus.DONE
        if done and finished_at and finished_at >= now - LAST_MINUTES:
            yield (finished_at - started_at).total_seconds()


def _event_seconds(now: datetime) -> Iterator[float]:
    newest = InboxEvent.objects.order_by("-pk").values_list("received_at", "handled_at")
    for received_at, handled_at in newest[:NEWEST]:
        if handled_at and handled_at >= now - LAST_MINUTES:
            yield (handled_at - received_at).total_seconds()
