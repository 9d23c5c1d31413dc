"""Writes of one change that are alike, put together: one statement for all rows, as quick as a few rows' own.

The values travel as one JSON text, so that the statement is the same for two rows as for fifty and PostgreSQL keeps
its plan. What is alike: updates by key that set the same columns under the same conditions, and new rows of one table.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Field, JSONField

from orchestrator.engine.storage.batch import SHAPES, Batch, Statement, Touched
from orchestrator.engine.storage.new_rows import plain_text
from orchestrator.engine.storage.table import ALL, Insert, Table, Update


class JsonColumn(NamedTuple):
    """A column that is set or compared: its field, and the text of its value if that is the same in all rows."""

    field: Field[Any, Any]
    text: str | None


def together(statements: Sequence[Statement]) -> Sequence[Statement]:
    """The same writes, those that are alike as one each, in the place of the first.

    Writes that may meet are left as they are, and so are all on SQLite, to which each is sent by itself anyway.
    """
    groups = defaultdict[object, list[Any]](list)
    for place, statement in enumerate(statements):
        groups[_form(statement) or place].append(statement)
    if len(groups) == len(statements) or connection.vendor != "postgresql":
        return statements
    if Batch(statements).meeting() is not None:
        return statements
    return [
        group[0] if len(group) == 1 else _one_of(group) for group in groups.values()
    ]


def _form(statement: Statement) -> object:
    """What alike writes have in common; None of one that goes alone."""
    if isinstance(statement, Insert):
        return None if statement.known else (statement.table, bool(statement.new_keys))
    if not isinstance(statement, Update) or statement.touched.how != "key":
        return None
    if statement.rows != 1 or statement.which != ALL:
        return None
    given = tuple((name, value is None) for name, value in statement.where.items())
    return statement.table, tuple(statement.values), given


def _one_of(group: Sequence[Any]) -> Statement:
    first = group[0]
    if isinstance(first, Insert):
        items = [item for one in group for item in one.items]
        return _inserted(first.table, items, first.touched)
    return _updated(group)


def _inserted(table: Table[Any], items: Sequence[Any], touched: Touched) -> Statement:
    fields = table.columns if items[0].pk is not None else table.unkeyed
    rows = [dict[str, Any]() for _ in items]
    values = [[getattr(item, field.attname) for field in fields] for item in items]
    columns = _columns("s", fields, values, rows)
    keys = [item.pk for item in items] if fields is table.columns else ()
    sql = _insert(table, columns)
    return Statement(sql, [json.dumps(rows)], touched, len(items), None, keys)


def _updated(group: Sequence[Update]) -> Statement:
    table, rows = group[0].table, [dict[str, Any]() for _ in group]
    sets = [table.fields[name] for name in group[0].values]
    values = [list(one.values.values()) for one in group]
    where = [table.fields[name] for name in group[0].where]
    given = [list(one.where.values()) for one in group]
    sql = _update(
        table,
        _columns("s", sets, values, rows),
        _columns("w", where, given, rows),
    )
    keys = frozenset(one.touched.key for one in group)
    touched = Touched(table.table, "keys", keys)
    return Statement(sql, [json.dumps(rows)], touched, len(group))


def _columns(
    prefix: str,
    fields: Sequence[Field[Any, Any]],
    values: Sequence[Sequence[Any]],
    rows: list[dict[str, Any]],
) -> tuple[JsonColumn, ...]:
    """The columns; values that differ are put into the rows."""
    found = []
    for place, field in enumerate(fields):
        given = [row[place] for row in values]
        texts = {plain_text(field, value) for value in given}
        text = texts.pop() if len(texts) == 1 else None
        found.append(JsonColumn(field, text))
        if text is None:
            as_json = isinstance(field, JSONField)
            for row, value in zip(rows, given, strict=True):
                row[f"{prefix}{place}"] = value if as_json else _written(value)
    return tuple(found)


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


@lru_cache(SHAPES)
def _insert(table: Table[Any], columns: tuple[JsonColumn, ...]) -> str:
    named = _named("s", columns)
    names = ", ".join(_quoted(column) for _, column in named)
    values = ", ".join(column.text or f"v.{name}" for name, column in named)
    return f"INSERT INTO {table.name} ({names}) SELECT {values} FROM {_given(named)}"  # noqa: S608  # names are the model's


@lru_cache(SHAPES)
def _update(
    table: Table[Any], sets: tuple[JsonColumn, ...], where: tuple[JsonColumn, ...]
) -> str:
    new, old = _named("s", sets), _named("w", where)
    values = ", ".join(
        f"{_quoted(column)} = {column.text or f'v.{name}'}" for name, column in new
    )
    conditions = " AND ".join(
        f"u.{_quoted(column)}"
        + (" IS NULL" if column.text == "NULL" else f" = {column.text or f'v.{name}'}")
        for name, column in old
    )
    return f"UPDATE {table.name} AS u SET {values} FROM {_given([*new, *old])} WHERE {conditions}"  # noqa: S608  # names are the model's


def _named(prefix: str, columns: Iterable[JsonColumn]) -> list[tuple[str, JsonColumn]]:
    """The columns with their names in the JSON text."""
    return [(f"{prefix}{place}", column) for place, column in enumerate(columns)]


def _given(columns: Sequence[tuple[str, JsonColumn]]) -> str:
    types = ", ".join(
        f"{name} {column.field.cast_db_type(connection)}"
        for name, column in columns
        if column.text is None
    )
    return f"json_to_recordset(%s::json) AS v({types})"


def _quoted(column: JsonColumn) -> str:
    return connection.ops.quote_name(str(column.field.column))
