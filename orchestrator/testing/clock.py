"""Due work and time in the test's own process.

The engine takes the time from the database, and no test can change that clock. So this module moves all stored times
back, from one due time to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import DateTimeField, Exists, F, Min, Model, OuterRef, Q, QuerySet

from orchestrator import queue as doorbell
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.batch import NOW, database_now
from orchestrator.engine.sql.tables import TABLES
from orchestrator.models import (
    Checkpoint,
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    StepRun,
    StepStatus,
    Verdict,
    Work,
)
from orchestrator.testing.isolation import isolate_statements

A_MOMENT = timedelta(seconds=0.6)
"""The longest time for which the engine postpones work without a failure, such as for lack of room."""

MOST_PIECES = 100_000
"""Most pieces of work in one call. More are an endless loop."""

MOST_MOMENTS = 10_000
"""Most due times in one call."""

PROCESS_OF: dict[type[Model], str] = {
    ProcessInstance: "pk",
    StepRun: "instance",
    InboxEvent: "process",
    IssuedCommand: "instance",
    Checkpoint: "instance",
    Incident: "instance",
    OperatorAction: "instance",
    OutsideId: "instance",
}
"""The tables with times -> the field that names the process."""

BEHIND = Exists(
    InboxEvent.objects.filter(
        Q(process=OuterRef("process"))
        | Q(target=OuterRef("target"), correlation_key=OuterRef("correlation_key"))
        & ~Q(correlation_key=""),
        pk__lt=OuterRef("pk"),
        verdict=Verdict.RECEIVED,
    ).exclude(error="", owner="")
)
"""The condition that an event waits for an earlier one, which has failed or which a worker holds."""

WORK: tuple[tuple[type[Work], Q], ...] = (
    (InboxEvent, Q(~BEHIND, verdict=Verdict.RECEIVED, error="")),
    (IssuedCommand, Q(status=CommandStatus.READY)),
    (StepRun, Q(status=StepStatus.READY)),
)
"""The tables of work, with the condition for work that has not failed."""


def run(queue: str | None = None) -> None:
    """Run due work, and the work that follows, until every process has ended, waits or pauses.

    Args:
        queue: the only queue whose work runs; None for all.

    Raises:
        AssertionError: the work does not end.
    """
    with _quietly():
        _run(queue)


def pass_time(
    time: timedelta = timedelta(0),
    /,
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    only: UUID | None = None,
) -> None:
    """Let time pass. Run the work that is due now, and then the work at each due time on the way.

    Args:
        time: the duration; the other units are added to it.
        days: further days, likewise `hours`, `minutes` and `seconds`.
        only: the id of a process, if time passes only for it and its sub-processes.

    Raises:
        ValueError: the duration is negative.
        AssertionError: the work does not end.
    """
    left = time + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if left < timedelta(0):
        raise ValueError(f"time does not run backwards, so {left} cannot pass")
    with _quietly():
        _run()
        ids = None if only is None else _family(only)
        for _ in range(MOST_MOMENTS):
            gap = _gap(ids)
            last = gap is None or gap > left
            step = left if gap is None else min(gap, left)
            move_times_back(step, ids)
            _run()
            left -= step
            if last:
                return
    raise AssertionError(f"something falls due again and again: {_busy()}")


def pass_to_next_moment(process_id: UUID) -> bool:
    """Let time pass to the next due time, and run the work that is due then.

    Returns:
        False if this process and its sub-processes have no due time. Then no time has passed.
    """
    gap = _gap(None)
    if gap is None or _gap(_family(process_id)) is None:
        return False
    with _quietly():
        move_times_back(gap)
        _run()
    return True


def _run(queue: str | None = None) -> None:
    asked = 0

    def endless() -> bool:
        nonlocal asked
        asked += 1
        return asked > MOST_PIECES

    while True:
        at_hand = _at_hand(queue)
        due = sorted(name for name, is_due in at_hand.items() if is_due)
        run = sum(drain(name, stop=endless, alone=True) for name in due)
        if endless():
            raise AssertionError(f"the work finds no end: {_busy()}")
        if run:
            continue
        gap = _put_off(queue) if at_hand else None
        if gap is None or (due and not gap):
            return  # other workers have claimed the due work
        move_times_back(gap)


def _at_hand(queue: str | None) -> dict[str, bool]:
    """The queues with work that is due now or in a moment -> whether it is due now."""
    now, soon = NOW, f"{NOW} + %s"
    moments: list[Any] = [A_MOMENT]
    if connection.vendor != "postgresql":
        here = database_now()
        adapted = connection.ops.adapt_datetimefield_value
        now = soon = "%s"
        moments = [adapted(here), adapted(here + A_MOMENT)]
    looked = " UNION ALL ".join(
        f"SELECT queue, MIN(wake_at) <= {now} FROM {TABLES[table].name} WHERE wake_at <= {soon} GROUP BY queue"  # noqa: S608  # names are the model's
        for table, _ in WORK
    )
    with connection.cursor() as cursor:
        cursor.execute(looked, moments * len(WORK))
        found = sorted(cursor.fetchall())  # those that are due come last
    return {
        name: bool(is_due) for name, is_due in found if queue is None or name == queue
    }


def _put_off(queue: str | None) -> timedelta | None:
    """The time until the first piece of work that was postponed for a moment; None without any."""
    now = database_now()
    here = {} if queue is None else {"queue": queue}
    moments = [
        _first(_rows(table).filter(fine, owner="", wake_at__lte=now + A_MOMENT, **here))
        for table, fine in WORK
    ]
    return _until(moments, now)


def _gap(ids: list[UUID] | None) -> timedelta | None:
    """The time until the next work is due; None without any."""
    now = database_now()
    return _until([_first(_of(table, ids)) for table, _ in WORK], now)


def _until(moments: list[datetime | None], now: datetime) -> timedelta | None:
    known = [moment for moment in moments if moment is not None]
    return max(min(known) - now, timedelta(0)) if known else None


def _first(rows: QuerySet[Any]) -> datetime | None:
    found: datetime | None = rows.aggregate(first=Min("wake_at"))["first"]
    return found


def move_times_back(time: timedelta, ids: list[UUID] | None = None) -> None:
    """Move all stored times back, or those of some processes. It runs nothing."""
    for table in PROCESS_OF:
        moments = [
            field.name
            for field in table._meta.concrete_fields
            if isinstance(field, DateTimeField)
        ]
        earlier = {name: F(name) - time for name in moments}
        _of(table, ids).update(**earlier)


def _of(table: type[Model], ids: list[UUID] | None) -> QuerySet[Any]:
    rows = _rows(table)
    return rows if ids is None else rows.filter(**{f"{PROCESS_OF[table]}__in": ids})


def _rows(table: type[Model]) -> QuerySet[Any]:
    return table._default_manager.all()


def _family(process_id: UUID) -> list[UUID]:
    """A process and its sub-processes."""
    found, parents = [process_id], [process_id]
    while parents:
        children = ProcessInstance.objects.filter(parent__in=parents)
        parents = list(children.values_list("pk", flat=True))
        found += parents
    return found


def _busy() -> str:
    """Describes work that is due or postponed."""
    rows = [row for table, _ in WORK for row in _rows(table).exclude(wake_at=None)[:3]]
    return ", ".join(map(_told, rows)) or "nothing is left now"


def _told(row: Work) -> str:
    """Describes a piece of work, with the last line of its error."""
    said = row.error.strip().splitlines()[-1:]  # type: ignore[attr-defined]  # each kind of work has one
    return ": ".join([str(row), *said])


@contextmanager
def _quietly() -> Iterator[None]:
    """Work without Redis and without commits until the end of the block."""
    with doorbell.suppress_all_wakes(), isolate_statements():
        yield
