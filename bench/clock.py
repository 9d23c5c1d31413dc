"""When something was committed, as the database says it."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, F, Max, QuerySet
from django.db.models.expressions import Combinable, RawSQL

EXACT = "PostgreSQL's commit timestamps"
NEAREST = "the rows' own times, which the database took before the commit (track_commit_timestamp is off)"


@cache
def has_commit_timestamps() -> bool:
    """Whether PostgreSQL keeps the time of each commit (`track_commit_timestamp`)."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SHOW track_commit_timestamp")
        return bool(cursor.fetchone()[0] == "on")


def measured_by() -> str:
    """How the ends of runs are known."""
    return EXACT if has_commit_timestamps() else NEAREST


def committed(rows: QuerySet[Any], own: str) -> Combinable:
    """When each of these rows was last written: its commit, or else the time in its own column."""
    if not has_commit_timestamps():
        return F(own)
    table = connection.ops.quote_name(rows.model._meta.db_table)
    sql = f"pg_xact_commit_timestamp({table}.xmin)"
    return RawSQL(sql, (), output_field=DateTimeField())  # noqa: S611  # its own name


def last_commit(rows: QuerySet[Any], own: str) -> datetime:
    """When the last of these rows was committed."""
    at: datetime = rows.aggregate(at=Max(committed(rows, own)))["at"]
    return at
