"""The time of a commit, as the database has it."""

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
    """Return whether PostgreSQL keeps the time of each commit (`track_commit_timestamp`)."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SHOW track_commit_timestamp")
        return bool(cursor.fetchone()[0] == "on")


def time_source() -> str:
    """Return in words how the ends of runs are measured."""
    return EXACT if has_commit_timestamps() else NEAREST


def commit_time(rows: QuerySet[Any], own: str) -> Combinable:
    """Return when each row was last written: its commit, or else the time in its own column."""
    if not has_commit_timestamps():
        return F(own)
    table = connection.ops.quote_name(rows.model._meta.db_table)
    sql = f"pg_xact_commit_timestamp({table}.xmin)"
    return RawSQL(sql, (), output_field=DateTimeField())  # noqa: S611  # its own name


def last_commit(rows: QuerySet[Any], own: str) -> datetime:
    """Return when the last of these rows was committed."""
    at: datetime = rows.aggregate(at=Max(commit_time(rows, own)))["at"]
    return at
