"""The distinct values of a column; an index leads from each value to the next, however many rows have it."""

from typing import Any

from django.db import connections
from django.db.models import Model

from monitoring.queries.counts import column_name


def distinct_values(
    model: type[Model], field: str, most: int, among: str = "TRUE"
) -> list[Any]:
    """Return the first distinct values of a column in their order.

    Args:
        model: the table.
        field: the column; an index must begin with it.
        most: the maximum number of values.
        among: the condition of a partial index, in SQL; rows outside it are ignored.
    """
    connection = connections["default"]
    quote = connection.ops.quote_name
    table, column = quote(model._meta.db_table), quote(column_name(model, field))
    # All names come from a model.
    statement = f"""
        SELECT value FROM (
            WITH RECURSIVE found(value, place) AS (
                SELECT MIN({column}), 1 FROM {table} WHERE {among}
                UNION ALL
                SELECT (SELECT MIN({column}) FROM {table} WHERE {among} AND {column} > found.value), place + 1
                FROM found WHERE found.value IS NOT NULL AND place < %s
            ) SELECT value FROM found WHERE value IS NOT NULL
        ) AS each_value
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, [most])
        return [row[0] for row in cursor.fetchall()]
