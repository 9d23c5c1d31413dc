"""Rows of values as one JSON text: the statement is the same for two rows and for fifty, so its plan is cached.

A plain value that is the same in all rows is a part of the statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Field, JSONField

from orchestrator.engine.sql.batch import NOW, SHAPES, Later
from orchestrator.engine.sql.row_statements import (
    Insert,
    Update,
    WrittenTable,
    plain_text,
)


@dataclass(frozen=True, eq=False, slots=True)
class RowColumn:
    """A column in the rows: made once, and compared by identity."""

    field: Field[Any, Any]
    name: str
    quoted: str
    type: str
    write: Callable[[Any], Any]
    """Converts a value to JSON that the database reads as the column's type."""


class JsonColumn(NamedTuple):
    """A column that is set or compared.

    Args:
        column: the column.
        text: its value's SQL, if the value is a part of the statement.
        later: whether the rows have intervals after the time of the statement.
    """

    column: RowColumn
    text: str | None
    later: bool = False

    @property
    def quoted(self) -> str:
        return self.column.quoted

    def value(self, rows: str) -> str:
        """Return the SQL of its value; `rows` is the name of the rows in the statement."""
        value = self.text or f"{rows}.{self.column.name}"
        return f"({NOW} + {value})" if self.later else value

    def typed(self, rows: str) -> str:
        """Return the SQL of its value with a type, for a place where the statement does not tell the type."""
        if self.text is None or connection.vendor != "postgresql":
            return self.value(rows)
        # A length would cut off what is too long.
        return f"CAST({self.text} AS {self.column.type.partition('(')[0]})"

    def condition(self, table: str, rows: str) -> str:
        """Return the condition that a table's row has the value."""
        same = "IS NULL" if self.text == "NULL" else f"= {self.value(rows)}"
        return f"{table}.{self.quoted} {same}"


@lru_cache(SHAPES)
def columns_of(
    table: WrittenTable, prefix: str, names: tuple[str, ...]
) -> tuple[RowColumn, ...]:
    """Return columns of a table in the rows.

    Args:
        table: the table.
        prefix: the prefix of their names in the rows, which no other columns have.
        names: the names of the columns.
    """
    fields = [table.fields[name] for name in names]
    return tuple(
        RowColumn(
            field,
            f"{prefix}{number}",
            connection.ops.quote_name(str(field.column)),
            str(field.cast_db_type(connection)),
            _writer(field),
        )
        for number, field in enumerate(fields)
    )


class JsonRows:
    """The values of some writes, row by row.

    Args:
        number: the number of rows.
    """

    def __init__(self, number: int) -> None:
        self._rows: list[dict[str, Any]] = [{"place": n} for n in range(number)]

    def columns(
        self, given: Sequence[RowColumn], values: Sequence[Iterable[Any]]
    ) -> tuple[JsonColumn, ...]:
        """Add columns.

        Args:
            given: the columns.
            values: the values of each row, in the order of the columns.
        """
        if len(self._rows) == 1:
            [row], [only] = self._rows, values
            return tuple(
                _only(row, column, value)
                for column, value in zip(given, only, strict=True)
            )
        return tuple(
            self._column(column, its)
            for column, its in zip(given, zip(*values, strict=True), strict=True)
        )

    def _column(self, column: RowColumn, values: Sequence[Any]) -> JsonColumn:
        first = values[0]
        # 1 and True are equal, but have different SQL.
        alike = values.count(first) == len(values) and len({*map(type, values)}) == 1
        text = plain_text(column.field, first) if alike else None
        if text is not None:
            return JsonColumn(column, text)
        later = column.type.startswith("timestamp") and Later in {*map(type, values)}
        name, write = column.name, _after if later else column.write
        for row, value in zip(self._rows, values, strict=True):
            row[name] = write(value)
        return JsonColumn(column, None, later)

    def text(self) -> str:
        """Return the JSON text of all rows."""
        return json.dumps(self._rows)


def _only(row: dict[str, Any], column: RowColumn, value: Any) -> JsonColumn:
    """Add a column to the only row."""
    text = plain_text(column.field, value)
    if text is None:
        row[column.name] = column.write(value)
    return JsonColumn(column, text)


def recordset(columns: Iterable[JsonColumn]) -> str:
    """Return the SQL of the rows, with these columns and `place`; the JSON text is the statement's next parameter.

    PostgreSQL expects a hundred rows of a function: it would read a whole table instead of its index, and cache that
    plan while the table grows. With a comparison to an unknown value it expects one row.
    """
    given = [column for column in columns if column.text is None]
    if connection.vendor != "postgresql":
        names = ["place", *(one.column.name for one in given)]
        found = (f"json_extract(value, '$.{name}') AS {name}" for name in names)
        return f"(SELECT {', '.join(found)} FROM json_each(%s)) AS given"  # noqa: S608  # names are the model's
    types = [
        f"{one.column.name} {'interval' if one.later else one.column.type}"
        for one in given
    ]
    rows = f"json_to_recordset(%s::json) AS given({', '.join(['place int', *types])})"
    return f"(SELECT * FROM {rows} WHERE place = place + 0) AS given"  # noqa: S608  # names are the model's


class RowsWrite(NamedTuple):
    """One write for several rows: of one table, one kind, and the same columns.

    Args:
        table: the table.
        sets: the columns that are set.
        where: the columns that are compared; none for new rows.
        fenced: whether the write of each row must hit one row.
        known: whether new rows get their keys from the database's answer.
    """

    table: WrittenTable
    sets: tuple[JsonColumn, ...]
    where: tuple[JsonColumn, ...] = ()
    fenced: bool = False
    known: bool = False

    @classmethod
    def of(cls, writes: Sequence[Any], rows: JsonRows, number: str = "") -> RowsWrite:
        """Merge several writes of one form; their different values go into the rows.

        Args:
            writes: inserts or updates, with one row each.
            rows: the rows that get their values.
            number: the prefix of their columns in the rows.
        """
        first: Insert | Update = writes[0]
        table = first.table
        if isinstance(first, Insert):
            items = [item for write in writes for item in write.items]
            keyed = items[0].pk is not None
            names = table.attnames if keyed else table.unkeyed_attnames
            columns = columns_of(table, f"s{number}", names)
            sets = rows.columns(columns, [*map(attrgetter(*names), items)])
            return cls(table, sets, known=first.known)
        sets = rows.columns(
            columns_of(table, f"s{number}", tuple(first.values)),
            [write.values.values() for write in writes],
        )
        where = rows.columns(
            columns_of(table, f"w{number}", tuple(first.where)),
            [write.where.values() for write in writes],
        )
        return cls(table, sets, where, fenced=first.rows == 1)

    @property
    def columns(self) -> tuple[JsonColumn, ...]:
        return *self.sets, *self.where

    @property
    def is_new(self) -> bool:
        """Whether it inserts new rows."""
        return not self.where

    def conditions(self, table: str, rows: str) -> str:
        """Return the condition that a table's row has the compared values; `rows` is the name of the rows."""
        return " AND ".join(column.condition(table, rows) for column in self.where)

    def sql(self, rows: str, source: str, which: str = "") -> str:
        """Return the SQL of the write.

        Args:
            rows: the name of the rows in the statement.
            source: the SQL of their source.
            which: the condition of the updated rows, in the place of the compared columns.
        """
        if self.is_new:
            names = ", ".join(column.quoted for column in self.sets)
            values = ", ".join(column.value(rows) for column in self.sets)
            return (
                f"INSERT INTO {self.table.name} ({names}) SELECT {values} FROM {source}"  # noqa: S608  # names are the model's
            )
        sets = ", ".join(f"{one.quoted} = {one.value(rows)}" for one in self.sets)
        which = which or self.conditions("u", rows)
        return f"UPDATE {self.table.name} AS u SET {sets} FROM {source} WHERE {which}"  # noqa: S608  # names are the model's


WRITTEN: dict[type, Callable[[Any], Any]] = {
    datetime: datetime.isoformat,
    UUID: lambda value: value.hex,
    timedelta: lambda value: f"{value.total_seconds():.6f} seconds",
}


def _writer(field: Field[Any, Any]) -> Callable[[Any], Any]:
    if connection.vendor != "postgresql":
        return lambda value: field.get_db_prep_save(value, connection)
    return _as_it_is if isinstance(field, JSONField) else _written


def _as_it_is(value: Any) -> Any:
    return value


def _after(value: Later | None) -> str | None:
    """The interval from the time of the statement to a moment."""
    return None if value is None else WRITTEN[timedelta](value.by)


def _written(value: Any) -> Any:
    """A column's value in JSON; PostgreSQL reads it as the column's type."""
    if value is None or type(value) in (int, str, bool):
        return value
    write = WRITTEN.get(type(value), str)  # a member of an enumeration is a text
    return write(value)
