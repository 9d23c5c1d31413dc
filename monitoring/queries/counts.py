"""Counting that stays quick whatever the size of the tables."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet

CAP = 5_000
"""Rows looked at for one set of counts."""

EACH_FOUND = 1_000
"""Rows looked at for one set of counts for which the process of each is read too."""

MANY = 10_000
"""Rows looked at for a count that needs an index alone."""

MARK = "\0"
"""Where a value belongs in a query that is asked for each of several: no text in the tables can contain it."""

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


def each_capped(
    parts: Mapping[str, QuerySet[Any]], caps: Mapping[str, int] | None = None
) -> dict[str, Capped]:
    """Several such counts in one statement, by their names.

    Args:
        caps: of those that do not look at `FEW` rows.
    """
    found = {name: Capped(0, (caps or {}).get(name, FEW)) for name in parts}
    statements = dict[str, tuple[str, tuple[Any, ...]]]()
    for name, rows in parts.items():
        with suppress(EmptyResultSet):  # one that nothing can match
            looked_at = rows.values("pk")[: found[name].cap]
            statements[name] = looked_at.query.sql_with_params()
    if not statements:
        return found
    # The inner statements come from the query compiler, their values as parameters.
    counts = ", ".join(
        f"(SELECT COUNT(*) FROM ({sql}) AS looked_at)"  # noqa: S608
        for sql, _ in statements.values()
    )
    given = [value for _, values in statements.values() for value in values]
    with connections[next(iter(parts.values())).db].cursor() as cursor:
        cursor.execute(f"SELECT {counts}", given)
        numbers = cursor.fetchone()
    for name, number in zip(statements, numbers, strict=True):
        found[name] = Capped(number, found[name].cap)
    return found


@dataclass(frozen=True)
class ForEach:
    """A query for each of some values: composing it so often takes longer than asking it.

    Args:
        rows: the query, with `MARK` where a value belongs.
        values: what stands there instead.
    """

    rows: QuerySet[Any]
    values: Sequence[str]


def grouped(
    rows: QuerySet[Any] | Iterable[QuerySet[Any]] | ForEach,
    *fields: str,
    cap: int = CAP,
    oldest: str = "",
    newest: str = "",
) -> list[tuple[Any, ...]]:
    """Counts by the values of fields: tuples of values, the count, and the ends that are asked for.

    Args:
        rows: or several parts; at most `cap` rows of each are looked at, in its order.
        oldest: a field with a time, the first of which follows the count.
        newest: a field with a key, the last of which follows after that.
    """
    wanted = [name for name in (*fields, oldest, newest) if name]
    values: Sequence[str] = (MARK,)
    if isinstance(rows, ForEach):
        parts, values = [rows.rows], rows.values
    else:
        parts = [rows] if isinstance(rows, QuerySet) else list(rows)
    looked_at = list[tuple[str, tuple[Any, ...]]]()
    for part in parts:
        with suppress(EmptyResultSet):  # one that nothing can match
            sql, given = part.values(*wanted)[:cap].query.sql_with_params()
            for value in values:
                its = tuple(value if one == MARK else one for one in given)
                looked_at.append((sql, its))
    if not looked_at:
        return []
    connection = connections[parts[0].db]

    def quoted(field: str) -> str:
        return connection.ops.quote_name(_column(parts[0], field))

    names = ", ".join(map(quoted, fields))
    # Names come from the model and the inner statements from the query compiler, their values as parameters.
    inner = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part" for sql, _ in looked_at)  # noqa: S608
    figures = "COUNT(*)"
    figures += f", MIN({quoted(oldest)})" if oldest else ""
    figures += f", MAX({quoted(newest)})" if newest else ""
    statement = (
        f"SELECT {names}, {figures} FROM ({inner}) AS looked_at GROUP BY {names}"  # noqa: S608
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for _, given in looked_at for value in given])
        found = list(cursor.fetchall())
    if not oldest:
        return found
    at = len(fields) + 1
    return [(*row[:at], moment(row[at]), *row[at + 1 :]) for row in found]


def moment(stored: Any) -> datetime | None:
    """A time from a statement of our own: SQLite gives it without a zone, or as text, in UTC."""
    found = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    if isinstance(found, datetime) and found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    return cast(datetime | None, found)


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
