"""Changes of several processes, written by one statement and one commit: a group commit.

Each change is one process's, as it would be sent by itself, and holds or fails by itself: the statement first locks the
rows that the changes must find (`rows=1`), without waiting for any, and writes only those changes all of whose rows
were there and free. The others are left to be sent singly, which tells what stands in their way.

Changes of one form go together: the same tables, columns and conditions in the same order. SQLite, whose cost is the
commit, is sent one after the other, each under a savepoint of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from django.db import DatabaseError, InterfaceError, connection, transaction

from orchestrator.engine.storage.batch import (
    SHAPES,
    Batch,
    Statement,
    prepared_cursor,
)
from orchestrator.engine.storage.json_rows import JsonRows, RowsWrite, recordset
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.engine.storage.row_statements import Insert
from orchestrator.exceptions import LeaseLost

FEW = 8
"""How many new rows of one table a change may have that goes with others."""

Writes = Sequence[Statement]
"""All writes of one change; the first is that of its process's row."""


class Committed(NamedTuple):
    """What became of changes.

    Args:
        written: of each whether it was written. One that was not has left nothing.
        refusal: what the database said of some that were not written. If that passes by itself, it is not known of
            them whether they were.
    """

    written: list[bool]
    refusal: DatabaseError | InterfaceError | None = None


def commit(changes: Sequence[Writes]) -> Committed:
    """Writes changes of different processes, in a transaction of its own; inside one of a test under a savepoint.

    Args:
        changes: no two of one process.
    """
    changes = [[*_row_by_row(writes)] for writes in changes]
    if connection.vendor == "postgresql":
        return _commit_by_form(changes)
    try:
        with transaction.atomic(durable=True):
            return Committed([_sent_alone(writes) for writes in changes])
    except (DatabaseError, InterfaceError) as refusal:
        return Committed([False] * len(changes), refusal)


def _commit_by_form(changes: Sequence[Writes]) -> Committed:
    """Commits the changes of each form by themselves: a refusal is that of its form alone."""
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
    return Committed(written, refusal)


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
        form = tuple(map(_form, writes))
        if None not in form and Batch(writes).meeting() is None:
            forms[form].append(place)
    return forms.values()


def _row_by_row(writes: Writes) -> Iterable[Statement]:
    """The writes, with each of a few new rows by itself."""
    for write in writes:
        if isinstance(write, Insert) and 1 < len(write.items) <= FEW:
            for item in write.items:
                yield Insert(write.table, [item], known=write.known)
        else:
            yield write


def _form(write: Statement) -> object:
    """What writes have in common that go together; None of many new rows."""
    many = isinstance(write, Insert) and len(write.items) > 1
    return None if many else write.form


def _sent(changes: Sequence[Writes]) -> list[int]:
    """Sends changes of one form; the numbers of those that were written."""
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
    """The statement for changes of one form; the key of the first row locked is that of the process."""
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
    """One write, for all changes whose rows are locked."""
    form = forms[number]
    if not form.is_new:
        which = f"u.{form.table.key} = ok.k{number}" if form.fenced else ""
        return form.sql("ok", "ok", which)
    told = f" RETURNING {form.table.key} AS key"
    told += ", instance_id AS process" * form.known
    return form.sql("ok", f"ok{_after(number, forms)}") + told


def _after(number: int, forms: Sequence[RowsWrite]) -> str:
    """Has new rows of one table get their keys in the order in which they are written."""
    same = (n for n in range(number) if forms[n].is_new)
    before = [n for n in same if forms[n].table is forms[number].table]
    return f" WHERE (SELECT COUNT(*) FROM w{before[-1]}) >= 0" if before else ""  # noqa: S608  # our own names
