"""How much work is due on each queue, and since when: all tables and queues in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db import connection

from orchestrator.engine.claims.unattended import WORK
from orchestrator.queue import plain


@dataclass(frozen=True)
class Due:
    """So much work is due, the oldest of it since then."""

    number: int
    oldest: datetime


def due_by_queue(now: datetime, most: int) -> dict[str, Due]:
    """The work that is due on each queue that has any, to `most` of each table, by a few looks at indexes."""
    at = connection.ops.adapt_datetimefield_value(now)
    with connection.cursor() as cursor:
        cursor.execute(_statement(connection.vendor), [at, most, at] * len(WORK))
        rows = cursor.fetchall()
    found = dict[str, Due]()
    for name, number, oldest in rows:
        if not number:  # all of it is for later
            continue
        since = _read(oldest)
        before = found.get(plain(name), Due(0, since))
        found[plain(name)] = Due(before.number + number, min(before.oldest, since))
    return found


def _read(stored: datetime | str) -> datetime:
    """A time as the database gives it: SQLite without a zone, or as text, in UTC."""
    found = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@cache
def _statement(_vendor: str) -> str:
    return " UNION ALL ".join(f"SELECT * FROM ({_of(table)}) AS part" for table in WORK)  # noqa: S608  # the names are those of models


def _of(table: Any) -> str:
    """Of one table: its index is asked for the next queue each time, then for what is due on that."""
    rows = connection.ops.quote_name(table._meta.db_table)
    names = f"SELECT queue FROM {rows} WHERE wake_at IS NOT NULL"  # noqa: S608
    due = f"FROM {rows} WHERE queue = found.queue AND wake_at <= %s ORDER BY wake_at"
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
    """  # noqa: S608
