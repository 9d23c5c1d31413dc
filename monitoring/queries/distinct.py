"""The distinct values of a column, however many rows have each: an index gives the next value each time."""

from typing import Any

from django.db import connections
from django.db.models import Model


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
    table, column = quote(model._meta.db_table), quote(_column(model, field))
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


def _column(model: type[Model], field: str) -> str:
    return str(model._meta.get_field(field).column)  # type: ignore[union-attr]  # a field of a table has one
