"""When something was committed, as the database says it."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Max, QuerySet

EXACT = "commit timestamps"
NEAREST = "the rows' own times, taken by the database just before the commit"


@cache
def has_commit_timestamps() -> bool:
    """Whether PostgreSQL keeps the time of each commit (`track_commit_timestamp`)."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SHOW track_commit_timestamp")
        return bool(cursor.fetchone()[0] == "on")


def measured_by() -> str:
    """How the end of a run is known."""
    return EXACT if has_commit_timestamps() else NEAREST


def last_commit(rows: QuerySet[Any], own: str) -> datetime:
    """When the last of these rows was committed, or else the last of their own times."""
    if not has_commit_timestamps():
        latest: datetime = rows.aggregate(at=Max(own))["at"]
        return latest
    keys = [str(key) for key in rows.values_list("pk", flat=True)]
    table = connection.ops.quote_name(rows.model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT MAX(pg_xact_commit_timestamp(xmin)) FROM {table} WHERE id::text = ANY(%s)",  # noqa: S608  # its own name
            [keys],
        )
        at: datetime = cursor.fetchone()[0]
        return at
