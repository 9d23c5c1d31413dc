"""Rows of values as one JSON text, so that a statement is the same for two rows as for fifty and its plan is kept.

What is the same in all rows, and is written as a plain text, is a part of the statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Field, JSONField

from orchestrator.engine.storage.batch import SHAPES
from orchestrator.engine.storage.new_rows import plain_text
from orchestrator.engine.storage.table import Table


@dataclass(frozen=True, eq=False, slots=True)
class RowColumn:
    """A column in the rows: made once, and compared by what it is."""

    field: Field[Any, Any]
    name: str
    quoted: str
    type: str
    as_json: bool


class JsonColumn(NamedTuple):
    """A column that is set or compared, and its text if that is in the statement."""

    column: RowColumn
    text: str | None

    @property
    def quoted(self) -> str:
        return self.column.quoted

    def value(self, rows: str) -> str:
        """Its value in the statement; `rows` is the name of the rows there."""
        return self.text or f"{rows}.{self.column.name}"

    def condition(self, table: str, rows: str) -> str:
        """That a table's row has the value."""
        same = "IS NULL" if self.text == "NULL" else f"= {self.value(rows)}"
        return f"{table}.{self.quoted} {same}"


@lru_cache(SHAPES)
def columns_of(
    table: Table[Any], prefix: str, names: tuple[str, ...]
) -> tuple[RowColumn, ...]:
    """Columns of a table in the rows.

    Args:
        table: whose columns.
        prefix: of their names in the rows, which no others have.
        names: of the columns.
    """
    fields = [table.fields[name] for name in names]
    return tuple(
        RowColumn(
            field,
            f"{prefix}{number}",
            connection.ops.quote_name(str(field.column)),
            str(field.cast_db_type(connection)),
            isinstance(field, JSONField),
        )
        for number, field in enumerate(fields)
    )


class JsonRows:
    """The values of some writes, row by row.

    Args:
        number: how many rows there are.
    """

    def __init__(self, number: int) -> None:
        self._rows: list[dict[str, Any]] = [{"place": n} for n in range(number)]

    def columns(
        self, given: Sequence[RowColumn], values: Sequence[Iterable[Any]]
    ) -> tuple[JsonColumn, ...]:
        """Adds columns.

        Args:
            given: the columns.
            values: of each row, in the order of the columns.
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
        # 1 and True are equal, but not one text.
        alike = values.count(first) == len(values) and len({*map(type, values)}) == 1
        text = plain_text(column.field, first) if alike else None
        if text is None:
            name, as_json = column.name, column.as_json
            for row, value in zip(self._rows, values, strict=True):
                row[name] = value if as_json else _written(value)
        return JsonColumn(column, text)

    def text(self) -> str:
        """All that was added."""
        return json.dumps(self._rows)


def recordset(columns: Iterable[JsonColumn]) -> str:
    """The rows in the statement, which have these columns and `place`; the text is its next parameter.

    PostgreSQL takes a function for a hundred rows, for which it reads a whole table rather than look each up, and keeps
    that plan while the table grows. Of what is compared to a value it does not know it expects one row.
    """
    types = [
        f"{column.column.name} {column.column.type}"
        for column in columns
        if column.text is None
    ]
    rows = f"json_to_recordset(%s::json) AS given({', '.join(['place int', *types])})"
    return f"(SELECT * FROM {rows} WHERE place = place + 0) AS given"  # noqa: S608  # names are the model's


def _only(row: dict[str, Any], column: RowColumn, value: Any) -> JsonColumn:
    """Adds a column to the only row."""
    text = plain_text(column.field, value)
    if text is None:
        row[column.name] = value if column.as_json else _written(value)
    return JsonColumn(column, text)


WRITTEN: dict[type, Callable[[Any], Any]] = {
    datetime: datetime.isoformat,
    UUID: lambda value: value.hex,
    timedelta: lambda value: f"{value.total_seconds():.6f} seconds",
}


def _written(value: Any) -> Any:
    """A value of a column as JSON has it; PostgreSQL reads it as the column's type."""
    if value is None or type(value) in (int, str, bool):
        return value
    write = WRITTEN.get(type(value), str)  # a member of an enumeration is a text
    return write(value)
