"""Looking for due work: on one queue before a claim, and on all queues for the supervisors and the status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from orchestrator.definition.process_definition import DEFAULT_QUEUE
from orchestrator.engine.sql.batch import NOW, database_now, prepared_cursor
from orchestrator.engine.sql.table import Table
from orchestrator.engine.sql.tables import WORK
from orchestrator.models import Worker
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
