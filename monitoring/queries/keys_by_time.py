"""The key of the first row since a moment; without an index on time, since keys grow with time."""

from __future__ import annotations

from datetime import datetime

from django.db import connections
from django.db.models import Model

from monitoring.queries.counts import column_name


def keys_since(model: type[Model], field: str, since: datetime) -> tuple[int, int]:
    """Return the key of the first row since a moment, or else the last key + 1; and the key of the last row.

    One statement runs a binary search of some twenty steps along the primary key.

    Args:
        model: the table; its key is a number.
        field: the time of writing.
        since: the moment.
    """
    connection = connections["default"]
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    column = quote(column_name(model, field))
    middle = "(low + high) / 2"
    row = f"FROM {table} AS r WHERE r.id >= {middle} ORDER BY r.id LIMIT 1"  # names are the model's
    old = f"(SELECT r.{column} {row}) < %s"
    statement = f"""
        WITH RECURSIVE halved(low, high, newest) AS (
            SELECT least - 1, most + 1, most
            FROM (SELECT (SELECT MIN(id) FROM {table}) AS least, (SELECT MAX(id) FROM {table}) AS most) AS ends
            WHERE least IS NOT NULL
            UNION ALL
            SELECT CASE WHEN {old} THEN {middle} ELSE low END,
                   CASE WHEN {old} THEN high ELSE {middle} END,
                   newest
            FROM halved WHERE high - low > 1
        )
        SELECT high, newest FROM halved WHERE high - low <= 1
    """  # noqa: S608
    given = connection.ops.adapt_datetimefield_value(since)
    with connection.cursor() as cursor:
        cursor.execute(statement, [given, given])
        first, last = cursor.fetchone() or (1, 0)
    return first, last


def first_since(model: type[Model], field: str, since: datetime) -> int:
    """Return the key of the first row since a moment; one more than the last key without such a row."""
    return keys_since(model, field, since)[0]
