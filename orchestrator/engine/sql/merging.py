"""Merging alike writes of one change into one statement for all rows, as quick as the statement of a few.

Updates by key are alike if they set the same columns under the same conditions; so are new rows of one table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db import connection

from orchestrator.engine.sql.batch import SHAPES, Batch, Statement, Touched
from orchestrator.engine.sql.json_rows import JsonRows, RowsWrite, recordset
from orchestrator.engine.sql.row_statements import Insert

MANY_ROWS = 4
"""More new rows are sent as JSON."""


def merge_alike(statements: Sequence[Statement]) -> Sequence[Statement]:
    """Return the same writes, with alike ones merged in the place of the first.

    Writes that may meet stay as they are, and so do all writes on SQLite, which takes each statement singly anyway.
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
    """Whether a statement would be a long text with many parameters, which Python takes long to build."""
    return isinstance(statement, Insert) and len(statement.items) > MANY_ROWS


def _form(statement: Statement) -> object:
    """The same value for alike writes; None for a write that goes alone."""
    if isinstance(statement, Insert):
        return None if statement.known else statement.form
    by_key = statement.touched.how == "key" and statement.rows == 1
    return statement.form if by_key else None


def _one_of(group: Sequence[Any]) -> Statement:
    first = group[0]
    if isinstance(first, Insert):
        items = [item for one in group for item in one.items]
        sql, rows = _sent(group, len(items))
        if first.known:
            told = f"{sql} RETURNING {first.table.key}"
            return Statement(told, rows, first.touched, None, first.receive)
        keys = [item.pk for item in items] if items[0].pk is not None else ()
        return Statement(sql, rows, first.touched, len(items), None, keys)
    touched_keys = frozenset(one.touched.key for one in group)
    touched = Touched(first.table.table, "keys", touched_keys)
    return Statement(*_sent(group, len(group)), touched, len(group))


def _sent(group: Sequence[Any], number: int) -> tuple[str, list[str]]:
    rows = JsonRows(number)
    return _whole(RowsWrite.of(group, rows)), [rows.text()]


@lru_cache(SHAPES)
def _whole(write: RowsWrite) -> str:
    return write.sql("given", recordset(write.columns))
