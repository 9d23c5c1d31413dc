"""Rows of values as one JSON text, so that a statement is the same for two rows as for fifty and its plan is kept.

What is the same in all rows, and is written as a plain text, is a part of the statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Field, JSONField

from orchestrator.engine.storage.new_rows import plain_text


class JsonColumn(NamedTuple):
    """A column that is set or compared: its field, its name in the rows, its text if that is in the statement."""

    field: Field[Any, Any]
    name: str
    text: str | None

    @property
    def quoted(self) -> str:
        return connection.ops.quote_name(str(self.field.column))

    def value(self, rows: str) -> str:
        """Its value in the statement; `rows` is the name of the rows there."""
        return self.text or f"{rows}.{self.name}"

    def condition(self, table: str, rows: str) -> str:
        """That a table's row has the value."""
        same = "IS NULL" if self.text == "NULL" else f"= {self.value(rows)}"
        return f"{table}.{self.quoted} {same}"


class JsonRows:
    """The values of some writes, row by row.

    Args:
        number: how many rows there are.
    """

    def __init__(self, number: int) -> None:
        self._rows: list[dict[str, Any]] = [{"place": n} for n in range(number)]

    def columns(
        self,
        prefix: str,
        fields: Sequence[Field[Any, Any]],
        values: Sequence[Sequence[Any]],
    ) -> tuple[JsonColumn, ...]:
        """Adds columns.

        Args:
            prefix: of their names, which no others have.
            fields: the columns.
            values: of each row, in the order of the columns.
        """
        given = zip(*values, strict=True)
        return tuple(
            self._column(f"{prefix}{place}", field, column)
            for place, (field, column) in enumerate(zip(fields, given, strict=True))
        )

    def _column(
        self, name: str, field: Field[Any, Any], values: Sequence[Any]
    ) -> JsonColumn:
        first = values[0]
        same = values.count(first) == len(
            values
        )  # 1 and True are equal, but not one text
        text = plain_text(field, first) if same else None
        if text is not None and {plain_text(field, one) for one in values} != {text}:
            text = None
        if text is None:
            as_json = isinstance(field, JSONField)
            for row, value in zip(self._rows, values, strict=True):
                row[name] = value if as_json else _written(value)
        return JsonColumn(field, name, text)

    def text(self) -> str:
        """All that was added."""
        return json.dumps(self._rows)


def recordset(columns: Iterable[JsonColumn]) -> str:
    """The rows in the statement, which have these columns and `place`; the text is its next parameter.

    PostgreSQL takes a function for a hundred rows, for which it reads a whole table rather than look each up, and keeps
    that plan while the table grows. Of what is compared to a value it does not know it expects one row.
    """
    types = [
        f"{column.name} {column.field.cast_db_type(connection)}"
        for column in columns
        if column.text is None
    ]
    rows = f"json_to_recordset(%s::json) AS given({', '.join(['place int', *types])})"
    return f"(SELECT * FROM {rows} WHERE place = place + 0) AS given"  # noqa: S608  # names are the model's


def _written(value: Any) -> Any:
    """A value of a column as JSON has it; PostgreSQL reads it as the column's type."""
    if value is None or type(value) in (int, str, bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.6f} seconds"
    return str(value)  # a member of an enumeration
