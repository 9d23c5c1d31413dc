"""Which kinds of work are due on a queue: asked in one exchange, before anything is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db import connection

from orchestrator.engine.storage.batch import NOW, database_now, prepared_cursor
from orchestrator.engine.storage.table import Table


def due(queue: str, tables: Sequence[Table[Any]]) -> list[bool]:
    """Whether each table has rows of the queue that are due; others may be about to take them."""
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
