"""Counts that look at a limited number of rows, and stay quick for tables of any size."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from operator import call
from typing import Any, Self, cast
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast

CAP = 5_000
"""Rows looked at for one set of counts."""

EACH_FOUND = 1_000
"""Rows looked at for one set of counts that also reads the process of each row."""

MANY = 10_000
"""Rows looked at for a count that reads only an index."""

MARK = "\0"
"""The placeholder of a value in a query that runs for several values; no stored text can contain it."""

FEW = 1_000
"""Rows looked at for a count that stands beside a link."""

TOGETHER = 100
"""The maximum number of parts of one statement; SQLite refuses more than 500."""

PLACE = re.compile("%.")
"""A parameter in a statement, or a percent sign of its own."""

CountStatement = tuple[str, tuple[Any, ...]]
"""A statement and the values of its parameters."""


@dataclass(frozen=True)
class Capped:
    """A count that stops at its cap, and then means "at least"."""

    number: int = 0
    cap: int = FEW

    @classmethod
    def of(cls, number: int, *, more: bool) -> Self:
        """Return a number that means "at least" if there may be more."""
        return cls(number, number if more else number + 1)

    @property
    def at_least(self) -> bool:
        return self.number >= self.cap

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.at_least else f"{self.number:,}"

    def __bool__(self) -> bool:
        return self.number > 0


def count_rows(rows: QuerySet[Any], cap: int = FEW) -> Capped:
    """Count rows, looking at `cap` of them at most."""
    return Capped(rows[:cap].count(), cap)


@dataclass(frozen=True)
class ForEach:
    """A query that runs for each of some values. Django compiles it once, since compiling takes longer than running.

    Args:
        rows: the function that returns the query, with `MARK` in the place of the value; its query never changes.
        values: the values for `MARK`.
        alike: whether PostgreSQL may plan it once for all values; False if a partial index covers only some values.
    """

    rows: Callable[[], QuerySet[Any]]
    values: Sequence[str]
    alike: bool = False


RowQuery = QuerySet[Any] | ForEach
"""A query, or a query for several values; each looks at a limited number of rows."""


def fixed_query(rows: Callable[[], QuerySet[Any]]) -> ForEach:
    """Return a query that never changes, and is compiled once."""
    return ForEach(rows, [MARK])


def count_each(
    parts: Mapping[str, RowQuery], caps: Mapping[str, int] | None = None
) -> dict[str, Capped]:
    """Return several capped counts by name, read in one statement.

    Args:
        parts: a query for each name.
        caps: the caps that are not `FEW`.
    """
    found = {name: Capped(0, (caps or {}).get(name, FEW)) for name in parts}
    read = {
        name: _statements_of(part, ("pk",), found[name].cap)
        for name, part in parts.items()
    }
    # A query that cannot match any row has no statement.
    statements = {name: one for name, (_, its) in read.items() for one in its}
    if not statements:
        return found
    of = next(rows for rows, _ in read.values())
    numbers = _numbers(of.db, statements.values())
    for name, number in zip(statements, numbers, strict=True):
        found[name] = Capped(number, found[name].cap)
    return found


def _numbers(database: str, statements: Collection[CountStatement]) -> Sequence[int]:
    """Return the number of rows of each statement, read in one statement."""
    # The inner statements come from the query compiler, their values as parameters.
    counts = (f"(SELECT COUNT(*) FROM ({sql}) AS looked_at)" for sql, _ in statements)  # noqa: S608
    given = [value for _, values in statements for value in values]
    with connections[database].cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(counts)}", given)
        return cast(Sequence[int], cursor.fetchone())


def count_by(
    rows: RowQuery | Iterable[RowQuery],
    *fields: str,
    cap: int = CAP,
    oldest: str = "",
    newest: str = "",
) -> list[tuple[Any, ...]]:
    """Return counts by the values of fields: tuples of the values, the count, and the requested extremes.

    Args:
        rows: one query or several; each looks at `cap` rows at most, in its order.
        oldest: a field with a time; its minimum follows the count.
        newest: a field with a key; its maximum follows after that.
    """
    wanted = [name for name in (*fields, oldest, newest) if name]
    parts = [rows] if isinstance(rows, QuerySet | ForEach) else list(rows)
    read = [_statements_of(part, (*wanted,), cap) for part in parts]
    statements = [one for _, its in read for one in its]
    if not statements:
        return []
    of = read[0][0]
    quoted = connections[of.db].ops.quote_name
    columns = {name: quoted(_output_column(of, name)) for name in wanted}
    figures: dict[str, Callable[[Iterable[Any]], Any]] = {"COUNT(*)": sum}
    if oldest:
        figures[f"MIN({columns[oldest]})"] = _earliest
    if newest:
        figures[f"MAX({columns[newest]})"] = max
    names = [columns[name] for name in fields]
    found = defaultdict[tuple[Any, ...], list[tuple[Any, ...]]](list)
    for row in _grouped_rows(of.db, statements, names, figures):
        found[row[: len(names)]].append(row[len(names) :])
    return [
        (*values, *map(call, figures.values(), zip(*its, strict=True)))
        for values, its in found.items()
    ]


def _statements_of(
    part: RowQuery, wanted: tuple[str, ...], cap: int
) -> tuple[QuerySet[Any], list[CountStatement]]:
    """Return the query of a part, and the statements that read its first rows."""
    if isinstance(part, QuerySet):
        return part, _compile(part, wanted, cap)
    rows, composed = _compile_once(part.rows, wanted, cap)
    can_be_one = part.alike and connections[rows.db].vendor == "postgresql"
    read = _for_all if can_be_one else _for_each
    return rows, [one for statement in composed for one in read(statement, part.values)]


def _for_each(statement: CountStatement, values: Sequence[str]) -> list[CountStatement]:
    """Return the statement once for each value."""
    sql, given = statement
    return [
        (sql, tuple(value if one == MARK else one for one in given)) for value in values
    ]


def _for_all(statement: CountStatement, values: Sequence[str]) -> list[CountStatement]:
    """Return one statement that runs for each value, and that PostgreSQL plans once."""
    sql, given = statement
    if MARK not in given:
        return _for_each(statement, values)
    left = list(given)
    marked = PLACE.sub(lambda found: _replace_mark(found[0], left), sql)
    rest = tuple(one for one in given if one != MARK)
    # The inner statement comes from the query compiler.
    return [
        (
            f"SELECT part.* FROM unnest(%s::text[]) AS given (value) CROSS JOIN LATERAL ({marked}) AS part",  # noqa: S608
            (list(values), *rest),
        )
    ]


def _replace_mark(place: str, left: list[Any]) -> str:
    """Return the replacement of a placeholder: the value for `MARK`; another placeholder stays."""
    return "given.value" if place == "%s" and left.pop(0) == MARK else place


@cache
def _compile_once(
    rows: Callable[[], QuerySet[Any]], wanted: tuple[str, ...], cap: int
) -> tuple[QuerySet[Any], list[CountStatement]]:
    return (found := rows()), _compile(found, wanted, cap)


def _compile(
    rows: QuerySet[Any], wanted: tuple[str, ...], cap: int
) -> list[CountStatement]:
    """Return the statement that reads the first rows; none if no row can match."""
    with suppress(EmptyResultSet):
        return [rows.values(*wanted)[:cap].query.sql_with_params()]
    return []


def _grouped_rows(
    database: str,
    statements: Sequence[CountStatement],
    names: Iterable[str],
    figures: Iterable[str],
) -> Iterator[tuple[Any, ...]]:
    """Yield the figures of the rows that some statements read, grouped by columns; `TOGETHER` statements at once."""
    by, wanted = ", ".join(names), ", ".join(figures)
    for at in range(0, len(statements), TOGETHER):
        some = statements[at : at + TOGETHER]
        # Names come from the model and the inner statements from the query compiler, their values as parameters.
        inner = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part" for sql, _ in some)  # noqa: S608
        with connections[database].cursor() as cursor:
            cursor.execute(
                f"SELECT {by}, {wanted} FROM ({inner}) AS looked_at GROUP BY {by}",  # noqa: S608
                [value for _, given in some for value in given],
            )
            yield from cursor.fetchall()


def _earliest(stored: Iterable[Any]) -> datetime | None:
    """Return the earliest of some times, if any."""
    return min(filter(None, map(time_from_sql, stored)), default=None)


def text_column(column: str) -> Cast:
    """Return a column as the database's text, which costs a tenth of the time that an object takes.

    Args:
        column: its name.
    """
    return Cast(column, TextField())


def parse_time(text: str) -> datetime:
    """Parse a time that was read by `text_column`: SQLite writes it without a zone, in UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def time_from_sql(stored: Any) -> datetime | None:
    """Return a time from raw SQL: SQLite gives it in UTC, as text or without a zone."""
    found = parse_time(stored) if isinstance(stored, str) else stored
    if isinstance(found, datetime) and found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    return cast(datetime | None, found)


def uuid_from_sql(stored: Any) -> UUID:
    """Return a process id from raw SQL: SQLite gives it as text."""
    return stored if isinstance(stored, UUID) else UUID(stored)


def short_number(number: int) -> str:
    """Write a number in at most four characters: 999, 12k, 3M."""
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if number >= size:
            return f"{number // (1000 if unit == 'k' else size)}{unit}"
    return str(number)


def _output_column(rows: QuerySet[Any], field: str) -> str:
    """Return the column of a value in the inner statement: an annotation has its own name."""
    return field if field in rows.query.annotations else column_name(rows.model, field)


def column_name(model: type[Model], field: str) -> str:
    """Return the column of a model's field."""
    return str(model._meta.get_field(field).column)  # type: ignore[union-attr]  # a field of a table has one
