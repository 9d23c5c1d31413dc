"""Changes of several processes, written by one statement and one commit: a group commit.

Each change is one process's, as it would be sent by itself, and holds or fails by itself: the statement first locks the
rows that the changes must find (`rows=1`), without waiting for any, and writes only those changes all of whose rows
were there and free. The others are left to be sent singly, which tells what stands in their way.

Changes of one form go together: the same tables, columns and conditions in the same order. Their values travel as one
JSON text, so that the statement is the same for two changes as for fifty, and PostgreSQL keeps its plan. SQLite, whose
cost is the commit, is sent one after the other, each under a savepoint of its own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Field, JSONField

from orchestrator.engine.storage.batch import (
    SHAPES,
    Batch,
    Statement,
    prepared_cursor,
)
from orchestrator.engine.storage.new_rows import plain_text
from orchestrator.engine.storage.table import ALL, Insert, Table, Update
from orchestrator.exceptions import LeaseLost

FEW = 8
"""How many new rows of one table a change may have that goes with others."""

Writes = Sequence[Statement]
"""All writes of one change; the first is that of its process's row."""


class Column(NamedTuple):
    """A column of a write: its field, and the text of its value if that is the same in all changes."""

    field: Field[Any, Any]
    text: str | None


class WriteForm(NamedTuple):
    """One write of a form."""

    table: Table[Any]
    kind: str
    sets: tuple[Column, ...]
    where: tuple[Column, ...]
    fenced: bool
    known: bool


def commit(changes: Sequence[Writes]) -> list[bool]:
    """Writes changes of different processes, in a transaction of its own; inside one of a test under a savepoint.

    Args:
        changes: no two of one process.

    Returns:
        For each whether it was written. One that was not has left nothing.

    Raises:
        DatabaseError: the database refused; whether any was written is not known.
    """
    changes = [[*_row_by_row(writes)] for writes in changes]
    written = [False] * len(changes)
    if connection.vendor != "postgresql":
        with transaction.atomic(durable=True):
            for place, writes in enumerate(changes):
                written[place] = _sent_alone(writes)
        return written
    for places in _by_form(changes):
        found = _sent([changes[place] for place in places])
        for number in found:
            written[places[number]] = True
    return written


def _sent_alone(writes: Writes) -> bool:
    try:
        with transaction.atomic():
            Batch(writes).send()
    except LeaseLost:
        return False
    return True


def _by_form(changes: Sequence[Writes]) -> Iterable[list[int]]:
    """The places of the changes that go together; those that can go with none are left out."""
    forms = defaultdict[tuple[object, ...], list[int]](list)
    for place, writes in enumerate(changes):
        if all(map(_fits, writes)) and Batch(writes).meeting() is None:
            forms[tuple(map(_form, writes))].append(place)
    return forms.values()


def _row_by_row(writes: Writes) -> Iterable[Statement]:
    """The writes, with each of a few new rows by itself."""
    for write in writes:
        if isinstance(write, Insert) and 1 < len(write.items) <= FEW:
            yield from (write.table.insert(item) for item in write.items)
        else:
            yield write


def _fits(write: Statement) -> bool:
    if isinstance(write, Insert):
        return len(write.items) == 1
    return isinstance(write, Update) and write.which == ALL


def _form(write: Statement) -> object:
    if isinstance(write, Insert):
        return write.table.table, write.known, write.items[0].pk is None
    assert isinstance(write, Update)  # noqa: S101  # see _fits
    nulls = tuple((name, value is None) for name, value in write.where.items())
    return write.table.table, write.rows, tuple(write.values), nulls


def _sent(changes: Sequence[Writes]) -> list[int]:
    """Sends changes of one form; the numbers of those that were written."""
    parts, rows = [], [dict[str, Any]() for _ in changes]
    for number, writes in enumerate(zip(*changes, strict=True)):
        parts.append(_part(number, writes, rows))
    for number, row in enumerate(rows):
        row["place"] = number
    with (
        transaction.atomic()
        if connection.in_atomic_block
        else connection.wrap_database_errors,
        prepared_cursor() as cursor,
    ):
        cursor.execute(_whole(tuple(parts)), [json.dumps(rows)])
        found = cursor.fetchall()
    known = [number for number, part in enumerate(parts) if part.known]
    for place, *keys in found:
        for number, key in zip(known, keys, strict=True):
            write = changes[place][number]
            assert write.receive is not None  # noqa: S101  # see Insert
            write.receive([[key]])
    return [place for place, *_ in found]


def _part(number: int, writes: Sequence[Any], rows: list[dict[str, Any]]) -> WriteForm:
    """What the changes' writes of one place have in common; what they have not is put into their rows."""
    first = writes[0]
    if isinstance(first, Insert):
        fields = first.table.unkeyed
        if first.items[0].pk is not None:
            fields = first.table.columns
        values = [[getattr(w.items[0], f.attname) for f in fields] for w in writes]
        sets = _columns(f"s{number}_", fields, values, rows)
        return WriteForm(
            first.table, "insert", sets, (), fenced=False, known=first.known
        )
    fields = [first.table.fields[name] for name in first.values]
    sets = _columns(f"s{number}_", fields, [[*w.values.values()] for w in writes], rows)
    fields = [first.table.fields[name] for name in first.where]
    where = _columns(f"w{number}_", fields, [[*w.where.values()] for w in writes], rows)
    return WriteForm(
        first.table, "update", sets, where, fenced=first.rows == 1, known=False
    )


def _columns(
    prefix: str,
    fields: Sequence[Field[Any, Any]],
    values: Sequence[Sequence[Any]],
    rows: list[dict[str, Any]],
) -> tuple[Column, ...]:
    """The columns of one write, with the values that differ put into the changes' rows."""
    found = []
    for place, (field, column) in enumerate(
        zip(fields, zip(*values, strict=True), strict=True)
    ):
        texts = {plain_text(field, value) for value in column}
        text = texts.pop() if len(texts) == 1 else None
        found.append(Column(field, text))
        if text is None:
            as_json = isinstance(field, JSONField)
            for row, value in zip(rows, column, strict=True):
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
    if hasattr(value, "total_seconds"):
        return f"{value.total_seconds():.6f} seconds"
    return str(value)  # a member of an enumeration


@lru_cache(SHAPES)
def _whole(parts: tuple[WriteForm, ...]) -> str:
    """The statement for changes of one form; the key of the first row locked is that of the process."""
    types, joins, steps = ["place int"], [], []
    for number, part in enumerate(parts):
        types += [
            f"{name} {column.field.cast_db_type(connection)}"
            for name, column in (*_named("s", number, part), *_named("w", number, part))
            if column.text is None
        ]
        if part.fenced:
            joins.append(
                f"JOIN {part.table.name} AS t{number} ON {_conditions('t', number, part, 'given')}"
            )
        steps.append(f"w{number} AS ({_step(number, part)})")
    fenced = [number for number, part in enumerate(parts) if part.fenced]
    known = [number for number, part in enumerate(parts) if part.known]
    keys = [f"t{n}.{parts[n].table.key} AS k{n}" for n in fenced]
    locks = ", ".join(f"t{n}" for n in fenced)
    told = ", ".join(["ok.place", *(f"w{n}.key" for n in known)])
    found = "".join(f" JOIN w{n} ON w{n}.process = ok.k0" for n in known)
    return (
        f"WITH given AS MATERIALIZED (SELECT * FROM json_to_recordset(%s::json) AS g({', '.join(types)})),"  # noqa: S608  # names are ours
        f" ok AS MATERIALIZED (SELECT given.*, {', '.join(keys)} FROM given {' '.join(joins)}"
        f" FOR UPDATE OF {locks} SKIP LOCKED),"
        f" {', '.join(steps)} SELECT {told} FROM ok{found}"
    )


def _named(
    what: Literal["s", "w"], number: int, part: WriteForm
) -> list[tuple[str, Column]]:
    """The columns that a write sets, or its conditions, with their names in the JSON text."""
    columns = part.sets if what == "s" else part.where
    return [(f"{what}{number}_{place}", one) for place, one in enumerate(columns)]


def _step(number: int, part: WriteForm) -> str:
    """One write, for all changes whose rows are locked."""
    values = [
        (_quoted(column), column.text or f"ok.{name}")
        for name, column in _named("s", number, part)
    ]
    if part.kind == "insert":
        names = ", ".join(name for name, _ in values)
        told = f"{part.table.key} AS key, instance_id AS process"
        return (
            f"INSERT INTO {part.table.name} ({names})"  # noqa: S608  # names are the model's
            f" SELECT {', '.join(value for _, value in values)} FROM ok{f' RETURNING {told}' * part.known}"
        )
    sets = ", ".join(f"{name} = {value}" for name, value in values)
    which = _conditions("u", number, part, "ok")
    if part.fenced:
        which = f"u{number}.{part.table.key} = ok.k{number}"
    return f"UPDATE {part.table.name} AS u{number} SET {sets} FROM ok WHERE {which}"  # noqa: S608  # names are the model's


def _conditions(alias: str, number: int, part: WriteForm, given: str) -> str:
    return " AND ".join(
        f"{alias}{number}.{_quoted(column)}"
        + (
            " IS NULL"
            if column.text == "NULL"
            else f" = {column.text or f'{given}.{name}'}"
        )
        for name, column in _named("w", number, part)
    )


def _quoted(column: Column) -> str:
    return connection.ops.quote_name(str(column.field.column))
