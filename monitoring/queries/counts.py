"""Counting that stays quick whatever the size of the tables."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet

CAP = 5_000
"""Rows looked at for one set of counts."""

MANY = 10_000
"""Rows looked at for a count that needs an index alone."""

FEW = 1_000
"""Rows looked at for a count that stands beside a link."""


@dataclass(frozen=True)
class Capped:
    """A count that stopped at its cap: then it says "at least"."""

    number: int
    cap: int

    @property
    def at_least(self) -> bool:
        return self.number >= self.cap

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.at_least else f"{self.number:,}"

    def __bool__(self) -> bool:
        return self.number > 0


def none() -> Capped:
    """A count of nothing."""
    return Capped(0, FEW)


def capped(rows: QuerySet[Any], cap: int = FEW) -> Capped:
    """How many rows there are, looking at no more than `cap` of them."""
    return Capped(rows[:cap].count(), cap)


def grouped(
    rows: QuerySet[Any] | Iterable[QuerySet[Any]],
    *fields: str,
    cap: int = CAP,
    oldest: str = "",
) -> list[tuple[Any, ...]]:
    """Counts by the values of fields: tuples of values with the count last.

    Args:
        rows: or several parts; at most `cap` rows of each are looked at, in its order.
        oldest: a field with a time, the first of which follows the count.
    """
    parts = [rows] if isinstance(rows, QuerySet) else list(rows)
    wanted = (*fields, oldest) if oldest else fields
    looked_at = list[tuple[str, tuple[Any, ...]]]()
    for part in parts:
        with suppress(EmptyResultSet):  # one that nothing can match
            looked_at.append(part.values(*wanted)[:cap].query.sql_with_params())
    if not looked_at:
        return []
    connection = connections[parts[0].db]
    names = ", ".join(
        connection.ops.quote_name(_column(parts[0], field)) for field in fields
    )
    # Names come from the model and the inner statements from the query compiler, their values as parameters.
    inner = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part" for sql, _ in looked_at)  # noqa: S608
    at = connection.ops.quote_name(_column(parts[0], oldest)) if oldest else ""
    figures = f"COUNT(*), MIN({at})" if oldest else "COUNT(*)"
    statement = (
        f"SELECT {names}, {figures} FROM ({inner}) AS looked_at GROUP BY {names}"  # noqa: S608
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for _, given in looked_at for value in given])
        found = list(cursor.fetchall())
    return [(*row[:-1], moment(row[-1])) for row in found] if oldest else found


def moment(stored: Any) -> datetime | None:
    """A time from a statement of our own: SQLite gives it as text, in UTC."""
    if not isinstance(stored, str):
        return cast(datetime | None, stored)
    return datetime.fromisoformat(stored).replace(tzinfo=UTC)


def short(number: int) -> str:
    """A number in at most four characters: 999, 12k, 3M."""
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if number >= size:
            return f"{number // (1000 if unit == 'k' else size)}{unit}"
    return str(number)


def _column(rows: QuerySet[Any], field: str) -> str:
    """The name of a value in the inner statement: an annotation's own, else its column."""
    if field in rows.query.annotations:
        return field
    return str(rows.model._meta.get_field(field).column)
