"""Claimable work: due work, and events in their order, each after all earlier events of its process.

The supervisors and the status ask for due work on all queues.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.engine.sql.batch import NOW, database_now, prepared_cursor
from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.table import Claimed, Table
from orchestrator.engine.sql.tables import WORK, events
from orchestrator.engine.work import leases, take_over
from orchestrator.models import InboxEvent, Worker
from orchestrator.models.inbox_event import UNDECIDED
from orchestrator.queue import base_queue, wake_queue


def find_due(queue: str, tables: Sequence[Table[Any]] = WORK) -> list[bool]:
    """Return for each table whether it has due rows of the queue, in one query. Another worker may claim them first."""
    params: list[object] = [queue]
    if connection.vendor != "postgresql":
        params.append(connection.ops.adapt_datetimefield_value(database_now()))
    with prepared_cursor() as cursor:
        cursor.execute(_asked(tuple(tables), connection.vendor), params * len(tables))
        return [bool(found) for found in cursor.fetchone()]


@lru_cache
def _asked(tables: tuple[Table[Any], ...], vendor: str) -> str:
    now = NOW if vendor == "postgresql" else "%s"
    found = (
        f"EXISTS (SELECT 1 FROM {table.name} WHERE queue = %s AND wake_at <= {now})"  # noqa: S608  # names are the models'
        for table in tables
    )
    return f"SELECT {', '.join(found)}"


def sweep(queue: str = DEFAULT_QUEUE) -> bool:
    """Look for due work that no wake announced, as after a lost wake or a dead worker; wake the queue if there is any.

    The sweep never runs work.
    """
    found = any(find_due(queue))
    if found:
        wake_queue(queue)
    return found


@dataclass(frozen=True)
class DueWork:
    """The number of due pieces of work, and the moment since which the oldest is due."""

    number: int
    oldest: datetime


def due_by_queue(now: datetime, most: int) -> dict[str, DueWork]:
    """Return the due work of each queue that has any, counted to `most` in each table, by a few index lookups."""
    at = connection.ops.adapt_datetimefield_value(now)
    with connection.cursor() as cursor:
        cursor.execute(_counted(connection.vendor), [at, most, at] * len(WORK))
        rows = cursor.fetchall()
    found = dict[str, DueWork]()
    for name, number, oldest in rows:
        if not number:  # all its work is for later
            continue
        since = _read(oldest)
        before = found.get(base_queue(name), DueWork(0, since))
        found[base_queue(name)] = DueWork(
            before.number + number, min(before.oldest, since)
        )
    return found


def unattended_queues() -> list[str]:
    """Return the queues with due work and without a living worker."""
    now = database_now()
    found = due_by_queue(now, 1)
    alive = Worker.objects.alive(now).filter(queue__in=found)
    return sorted(found.keys() - set(alive.values_list("queue", flat=True)))


def _read(stored: datetime | str) -> datetime:
    """Convert a time that the database returned: SQLite returns it without a zone, or as text, in UTC."""
    found = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@lru_cache
def _counted(vendor: str) -> str:
    return " UNION ALL ".join(f"SELECT * FROM ({_of(table)}) AS part" for table in WORK)  # noqa: S608  # names are the models'


def _of(table: Table[Any]) -> str:
    """The query of one table: it asks the index for the next queue each time, then for the due rows of that queue."""
    names = f"SELECT queue FROM {table.name} WHERE wake_at IS NOT NULL"  # noqa: S608  # names are the models'
    due = f"FROM {table.name} WHERE queue = found.queue AND wake_at <= %s ORDER BY wake_at"
    return f"""
        WITH RECURSIVE found(queue) AS (
            SELECT * FROM ({names} ORDER BY queue LIMIT 1) AS first
            UNION ALL
            SELECT ({names} AND queue > found.queue ORDER BY queue LIMIT 1)
            FROM found WHERE found.queue IS NOT NULL
        )
        SELECT queue,
            (SELECT COUNT(*) FROM (SELECT 1 {due} LIMIT %s) AS looked_at),
            (SELECT wake_at {due} LIMIT 1)
        FROM found WHERE queue IS NOT NULL
    """  # noqa: S608  # names are the models'


A_MOMENT = timedelta(seconds=0.05)
"""How long an event is postponed when another worker has claimed an earlier event of its process."""


class Lines:
    """One claimed batch, the oldest first: the rows that run one after the other, and those that come too early.

    Rows with the same first row ahead of them are in one line: they belong to one process, which may not exist yet. The
    row that starts it has the process id and the key: rows that name it by its id and rows that name it by its key are
    one line from then on.
    """

    def __init__(self, claimed: Sequence[Claimed[Any]]) -> None:
        self.mine: list[Claimed[Any]] = []
        """The rows that run, each after those before it in its line are settled."""
        self.early: list[Claimed[Any]] = []
        self._lines: dict[int, int] = {}
        self._stopped: set[int] = set()
        here: set[int] = set()
        broken: set[int] = set()
        for item in claimed:
            pk = item.work.pk
            if not item.ahead and pk not in broken:  # mostly so: sets would take longer
                self._lines[pk] = pk
                self.mine.append(item)
                here.add(pk)
                continue
            first = min(item.ahead, default=pk)
            line = self._lines.get(first, first)
            joined = {self._lines[one] for one in item.ahead & self._lines.keys()}
            if joined - {line}:
                broken |= {line} if broken & joined else set()
                for one, its_line in self._lines.items():
                    self._lines[one] = line if its_line in joined else its_line
            self._lines[pk] = line
            if item.ahead <= here and line not in broken:
                self.mine.append(item)
                here.add(pk)
            else:
                self.early.append(item)
                broken.add(line)  # only for the rows behind it

    def line_of(self, item: Claimed[Any]) -> object:
        """Return the same value for all work of one line, and another for each other line."""
        return self._lines[item.work.pk]

    def may_run(self, item: Claimed[Any]) -> bool:
        """Whether the work before it in its line was settled."""
        return self._lines[item.work.pk] not in self._stopped

    def stop(self, item: Claimed[Any]) -> None:
        """Note that a piece of work was not settled; the rest of its line waits."""
        self._stopped.add(self._lines[item.work.pk])


NAMED = ("queue", "wake_at", "process", "target", "correlation_key")
"""The columns of an event that say when it is due, and for which process."""


def postpone(
    queue: str,
    owner: str,
    early: Sequence[Claimed[InboxEvent]],
    skipped: ClaimedElsewhere,
) -> list[InboxEvent]:
    """Release events that come too early.

    An event behind an unclaimed one is due together with it, also where that is a later attempt. An event behind a
    claimed one keeps its place before later events: the worker of the claimed one goes on with it.

    Args:
        queue: the queue of the events.
        owner: the worker that has claimed them.
        early: the claims.
        skipped: the processes that the worker claims no events of.

    Returns:
        The events behind those that another worker has claimed, or that this one skips; they are due at once.
    """
    if not early:
        return []
    take_over.yield_work(owner, [leases.work_name(item.work) for item in early])
    # Ask only now which worker holds the events ahead: when they are settled, these can be claimed already.
    numbers = set().union(*(item.ahead for item in early))
    undecided = InboxEvent.objects.filter(UNDECIDED, pk__in=numbers)
    now = database_now()
    soon = now + A_MOMENT
    with transaction.atomic():
        # Locked: the worker that settles an event wakes those behind it, which must be waiting by then.
        unheld = undecided.filter(Q(owner="") | Q(wake_at__lte=now))
        free = list(unheld.select_for_update(skip_locked=True).only(*NAMED))
        moments = {
            row.pk: row.wake_at if row.queue == queue else max(row.wake_at, soon)
            for row in free
        }
        others = undecided.exclude(pk__in=moments).exclude(owner=owner)
        held = set(others.values_list("pk", flat=True))
        held |= {row.pk for row in free if skipped.has(row)}
        for item in early:  # the first ones first
            if not held.isdisjoint(item.ahead):
                held.add(item.work.pk)
        due = defaultdict[datetime, list[int]](list)
        for item in early:
            before = [moments[pk] for pk in item.ahead & moments.keys()]
            if before and held.isdisjoint(item.ahead):
                due[max(before)].append(item.work.pk)
        for moment, behind in due.items():
            given_back = InboxEvent.objects.filter(pk__in=behind, owner="")
            given_back.filter(wake_at__lt=moment).update(wake_at=moment)
    return [item.work for item in early if item.work.pk in held]


class ClaimedElsewhere:
    """Processes whose next event another worker has claimed: for a moment, this worker claims none of their events."""

    def __init__(self) -> None:
        self._until: dict[UUID | tuple[str, str], float] = {}

    def note(self, found: Iterable[InboxEvent]) -> None:
        """Note the processes of some events, as the events name them."""
        until = time.monotonic() + A_MOMENT.total_seconds()
        for event in found:
            named = (event.target, event.correlation_key)
            self._until[event.process_id or named] = until

    def has(self, event: InboxEvent) -> bool:
        """Whether the process of an event is noted, by its id or its key, as the event names it."""
        names = {event.process_id, (event.target, event.correlation_key)}
        return not names.isdisjoint(self._until)

    def count(self) -> int:
        """Return how many processes are noted now."""
        now = time.monotonic()
        self._until = {name: end for name, end in self._until.items() if end > now}
        return len(self._until)

    def clear(self) -> None:
        self._until.clear()

    def claimable(self) -> Condition:
        """Return the condition of the events that may be claimed."""
        ids = [name for name in self._until if isinstance(name, UUID)]
        keys = [name for name in self._until if isinstance(name, tuple)]
        return events.besides(ids, keys) if self._until else ALL
