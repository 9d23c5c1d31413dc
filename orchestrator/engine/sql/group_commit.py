"""Writing many rows together: the changes of several processes in one commit, and the alike writes of one change.

In a group commit each change belongs to one process, and succeeds or fails independently. The statement first locks the
rows that the changes must find (`rows=1`), without waiting for any, and writes the changes whose rows all were there
and free. The others are sent singly afterwards, which shows the reason.

Changes of one form share a statement: the same tables, columns and conditions in the same order. SQLite, whose cost is
the commit, takes the changes one after the other, each under a savepoint of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError, connection, transaction

from orchestrator.engine.sql.batch import (
    SHAPES,
    Batch,
    Statement,
    Touched,
    prepared_cursor,
)
from orchestrator.engine.sql.connection import passes
from orchestrator.engine.sql.json_rows import JsonRows, RowsWrite, recordset
from orchestrator.engine.sql.row_statements import Insert
from orchestrator.exceptions import LeaseLost

FEW = 8
"""The most new rows of one table in a change that shares a statement."""

Writes = Sequence[Statement]
"""All writes of one change; the first one writes the row of its process."""


class GroupCommit(NamedTuple):
    """The outcome of a group commit.

    Args:
        written: for each change whether it was written; the others have left nothing.
        refusal: the database's error for some changes that were not written. If the error passes by itself, the
            outcome of these changes is unknown.
    """

    written: list[bool]
    refusal: DatabaseError | InterfaceError | None = None


def commit_changes(changes: Sequence[Writes]) -> GroupCommit:
    """Write changes of different processes, in a transaction of their own; inside a test's under a savepoint.

    Args:
        changes: the changes, no two of one process.
    """
    changes = [[*_row_by_row(writes)] for writes in changes]
    if connection.vendor == "postgresql":
        return _commit_by_form(changes)
    try:
        with transaction.atomic(durable=True):
            return GroupCommit([_sent_alone(writes) for writes in changes])
    except (DatabaseError, InterfaceError) as refusal:
        return GroupCommit([False] * len(changes), refusal)


def _commit_by_form(changes: Sequence[Writes]) -> GroupCommit:
    """Commit the changes of each form separately: a refusal concerns only its form."""
    written, refusal = [False] * len(changes), None
    for numbers in _by_form(changes):
        try:
            found = _sent([changes[number] for number in numbers])
        except (DatabaseError, InterfaceError) as error:
            refusal = error
            if passes(error):
                break
            continue
        for place in found:
            written[numbers[place]] = True
    return GroupCommit(written, refusal)


def _sent_alone(writes: Writes) -> bool:
    try:
        with transaction.atomic():
            Batch(writes).send()
    except LeaseLost:
        return False
    return True


def _by_form(changes: Sequence[Writes]) -> Iterable[list[int]]:
    """The places of the changes of each form, without those that share no statement."""
    forms = defaultdict[tuple[object, ...], list[int]](list)
    for place, writes in enumerate(changes):
        form = tuple(map(_form, writes))
        if None not in form and Batch(writes).meeting() is None:
            forms[form].append(place)
    return forms.values()


def _row_by_row(writes: Writes) -> Iterable[Statement]:
    """The writes, with a separate insert for each of a few new rows."""
    for write in writes:
        if isinstance(write, Insert) and 1 < len(write.items) <= FEW:
            for item in write.items:
                yield Insert(write.table, [item], known=write.known)
        else:
            yield write


def _form(write: Statement) -> object:
    """The same value for writes that share a statement; None for an insert of many rows."""
    many = isinstance(write, Insert) and len(write.items) > 1
    return None if many else write.form


def _sent(changes: Sequence[Writes]) -> list[int]:
    """Send changes of one form. Return the numbers of those that were written."""
    rows = JsonRows(len(changes))
    forms = tuple(
        RowsWrite.of(writes, rows, f"{number}_")
        for number, writes in enumerate(zip(*changes, strict=True))
    )
    with (
        transaction.atomic()
        if connection.in_atomic_block
        else connection.wrap_database_errors,
        prepared_cursor() as cursor,
    ):
        cursor.execute(_whole(forms), [rows.text()])
        found = cursor.fetchall()
    known = [number for number, form in enumerate(forms) if form.known]
    for place, *keys in found:
        for number, key in zip(known, keys, strict=True):
            write = changes[place][number]
            assert write.receive is not None  # noqa: S101  # see Insert
            write.receive([[key]])
    return [place for place, *_ in found]


@lru_cache(SHAPES)
def _whole(forms: tuple[RowsWrite, ...]) -> str:
    """The statement for changes of one form; the first locked row is that of the process."""
    fenced = [number for number, form in enumerate(forms) if form.fenced]
    known = [number for number, form in enumerate(forms) if form.known]
    columns = [column for form in forms for column in form.columns]
    steps = [f"w{n} AS ({_step(n, forms)})" for n in range(len(forms))]
    joins = [
        f"JOIN {forms[n].table.name} AS t{n} ON {forms[n].conditions(f't{n}', 'given')}"
        for n in fenced
    ]
    keys = [f"t{n}.{forms[n].table.key} AS k{n}" for n in fenced]
    locks = ", ".join(f"t{n}" for n in fenced)
    told = ", ".join(["ok.place", *(f"w{n}.key" for n in known)])
    found = "".join(f" JOIN w{n} ON w{n}.process = ok.k0" for n in known)
    return (
        f"WITH given AS MATERIALIZED (SELECT * FROM {recordset(columns)}),"  # noqa: S608  # names are ours
        f" ok AS MATERIALIZED (SELECT given.*, {', '.join(keys)} FROM given {' '.join(joins)}"
        f" FOR UPDATE OF {locks} SKIP LOCKED),"
        f" {', '.join(steps)} SELECT {told} FROM ok{found}"
    )


def _step(number: int, forms: Sequence[RowsWrite]) -> str:
    """The SQL of one write, for all changes whose rows are locked."""
    form = forms[number]
    if not form.is_new:
        which = f"u.{form.table.key} = ok.k{number}" if form.fenced else ""
        return form.sql("ok", "ok", which)
    told = f" RETURNING {form.table.key} AS key"
    told += ", instance_id AS process" * form.known
    return form.sql("ok", f"ok{_after(number, forms)}") + told


def _after(number: int, forms: Sequence[RowsWrite]) -> str:
    """The condition that gives new rows of one table their keys in the order of the writes."""
    same = (n for n in range(number) if forms[n].is_new)
    before = [n for n in same if forms[n].table is forms[number].table]
    return f" WHERE (SELECT COUNT(*) FROM w{before[-1]}) >= 0" if before else ""  # noqa: S608  # our own names


MANY_ROWS = 4
"""More new rows are sent as JSON."""


def merge_alike(statements: Sequence[Statement]) -> Sequence[Statement]:
    """Return the same writes, with alike ones merged in the place of the first.

    Updates by key are alike if they set the same columns under the same conditions; so are new rows of one table.
    Writes that may meet stay as they are, and so do all writes on SQLite, which takes each statement singly anyway.
    """
    groups = defaultdict[object, list[Any]](list)
    for place, statement in enumerate(statements):
        groups[_alike_form(statement) or place].append(statement)
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


def _alike_form(statement: Statement) -> object:
    """The same value for alike writes; None for a write that goes alone."""
    if isinstance(statement, Insert):
        return None if statement.known else statement.form
    by_key = statement.touched.how == "key" and statement.rows == 1
    return statement.form if by_key else None


def _one_of(group: Sequence[Any]) -> Statement:
    first = group[0]
    if isinstance(first, Insert):
        items = [item for one in group for item in one.items]
        sql, rows = _sent_rows(group, len(items))
        if first.known:
            told = f"{sql} RETURNING {first.table.key}"
            return Statement(told, rows, first.touched, None, first.receive)
        keys = [item.pk for item in items] if items[0].pk is not None else ()
        return Statement(sql, rows, first.touched, len(items), None, keys)
    touched_keys = frozenset(one.touched.key for one in group)
    touched = Touched(first.table.table, "keys", touched_keys)
    return Statement(*_sent_rows(group, len(group)), touched, len(group))


def _sent_rows(group: Sequence[Any], number: int) -> tuple[str, list[str]]:
    rows = JsonRows(number)
    return _rows_sql(RowsWrite.of(group, rows)), [rows.text()]


@lru_cache(SHAPES)
def _rows_sql(write: RowsWrite) -> str:
    return write.sql("given", recordset(write.columns))
