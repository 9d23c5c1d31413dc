"""Writes of one change that are alike, put together: one statement for all rows, as quick as a few rows' own.

What is alike: updates by key that set the same columns under the same conditions, and new rows of one table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from django.db import connection

from orchestrator.engine.storage.batch import SHAPES, Batch, Statement, Touched
from orchestrator.engine.storage.json_rows import (
    JsonColumn,
    JsonRows,
    columns_of,
    recordset,
)
from orchestrator.engine.storage.row_statements import ALL
from orchestrator.engine.storage.table import Insert, Table, Update

MANY_ROWS = 4
"""More new rows are sent as JSON."""


def together(statements: Sequence[Statement]) -> Sequence[Statement]:
    """The same writes, those that are alike as one each, in the place of the first.

    Writes that may meet are left as they are, and so are all on SQLite, to which each is sent by itself anyway.
    """
    groups = defaultdict[object, list[Any]](list)
    for place, statement in enumerate(statements):
        groups[_form(statement) or place].append(statement)
    several = [len(group) > 1 or _is_long(group[0]) for group in groups.values()]
    if not any(several) or connection.vendor != "postgresql":
        return statements
    if Batch(statements).meeting() is not None:
        return statements
    return [
        _one_of(group) if many else group[0]
        for group, many in zip(groups.values(), several, strict=True)
    ]


def _is_long(statement: Statement) -> bool:
    """Whether it would be a long text with many parameters, which it takes Python long to put together."""
    return isinstance(statement, Insert) and len(statement.items) > MANY_ROWS


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
        return _inserted(first, items)
    return _updated(group)


def _inserted(first: Insert, items: Sequence[Any]) -> Statement:
    table = first.table
    keyed = items[0].pk is not None
    names = table.attnames if keyed else table.unkeyed_attnames
    keys = [item.pk for item in items] if keyed else ()
    rows = JsonRows(len(items))
    values = [*map(attrgetter(*names), items)]
    sql = _insert(table, rows.columns(columns_of(table, "s", names), values))
    if first.known:
        told = f"{sql} RETURNING {table.key}"
        return Statement(told, [rows.text()], first.touched, None, first.receive)
    return Statement(sql, [rows.text()], first.touched, len(items), None, keys)


def _updated(group: Sequence[Update]) -> Statement:
    table, rows = group[0].table, JsonRows(len(group))
    sets = columns_of(table, "s", tuple(group[0].values))
    where = columns_of(table, "w", tuple(group[0].where))
    sql = _update(
        table,
        rows.columns(sets, [one.values.values() for one in group]),
        rows.columns(where, [one.where.values() for one in group]),
    )
    keys = frozenset(one.touched.key for one in group)
    touched = Touched(table.table, "keys", keys)
    return Statement(sql, [rows.text()], touched, len(group))


@lru_cache(SHAPES)
def _insert(table: Table[Any], columns: tuple[JsonColumn, ...]) -> str:
    names = ", ".join(column.quoted for column in columns)
    values = ", ".join(column.value("given") for column in columns)
    return (
        f"INSERT INTO {table.name} ({names}) SELECT {values} FROM {recordset(columns)}"  # noqa: S608  # names are the model's
    )


@lru_cache(SHAPES)
def _update(
    table: Table[Any], sets: tuple[JsonColumn, ...], where: tuple[JsonColumn, ...]
) -> str:
    values = ", ".join(f"{column.quoted} = {column.value('given')}" for column in sets)
    conditions = " AND ".join(column.condition("u", "given") for column in where)
    rows = recordset([*sets, *where])
    return f"UPDATE {table.name} AS u SET {values} FROM {rows} WHERE {conditions}"  # noqa: S608  # names are the model's
