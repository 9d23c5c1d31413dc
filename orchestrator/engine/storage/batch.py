"""Sending writes: collected, and carried out in one round trip.

A transition writes five to eight rows. PostgreSQL takes them in one message, SQLite, in process, one by one.
Correctness rests on the expected row counts: a statement that hits another number of rows raises LeaseLost, and nothing
of the transaction stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import DataError, connection, transaction

from orchestrator.exceptions import LeaseLost

NOW = "STATEMENT_TIMESTAMP()"
"""PostgreSQL's clock, the one that leases are measured by; SQLite has that of its one machine."""


class Statement(NamedTuple):
    """One write; `rows` is how many rows it must hit, None for any number."""

    sql: str
    params: Sequence[Any]
    rows: int | None = None
    receive: Callable[[list[Any]], None] | None = None
    """Takes the rows that the statement returns, if it returns any."""


MANY_PARAMS = 30_000
"""PostgreSQL takes about twice as many in one statement."""

SHAPES = 1000
"""How many statements' texts a process keeps."""

DIVISION_BY_ZERO = "22012"


def send(statements: Iterable[Statement]) -> None:
    """Carries the writes out, in order.

    Raises:
        LeaseLost: one of them did not hit the rows it had to; roll back.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            batch = list(statements)
            cursor.execute(
                ";\n".join(statement.sql for statement in batch),
                [param for statement in batch for param in statement.params],
            )
            for statement in batch:
                _expect(statement, cursor.rowcount)
                if statement.receive is not None:
                    statement.receive(cursor.fetchall())
                cursor.nextset()
        else:
            for statement in statements:
                cursor.execute(statement.sql, statement.params)
                if statement.receive is not None:
                    # SQLite counts the rows only now.
                    statement.receive(cursor.fetchall())
                _expect(statement, cursor.rowcount)


def send_whole(statements: Sequence[Statement]) -> None:
    """Carries the writes out as a transaction of their own, on PostgreSQL in one round trip.

    They must not touch a row twice, and cannot see each other.

    Raises:
        LeaseLost: one of them did not hit the rows it had to; nothing was written.
    """
    if _fits_in_one(statements):
        _send_together(statements)
    else:
        with transaction.atomic(durable=True):
            send(statements)


def send_apart(statements: Sequence[Statement]) -> None:
    """Carries writes out that do not touch a row twice, in the running transaction.

    Raises:
        LeaseLost: one of them did not hit the rows it had to; roll back.
    """
    if _fits_in_one(statements):
        _send_together(statements)
    else:
        send(statements)


def _fits_in_one(statements: Sequence[Statement]) -> bool:
    params = sum(len(statement.params) for statement in statements)
    return connection.vendor == "postgresql" and params <= MANY_PARAMS


def _send_together(statements: Sequence[Statement]) -> None:
    """One prepared statement: PostgreSQL reads and plans it once a connection."""
    params = [param for statement in statements for param in statement.params]
    shape = tuple((s.sql, s.rows, s.receive is not None) for s in statements)
    try:
        with _cursor() as cursor:
            cursor.execute(_whole(shape), params)
            found = cursor.fetchone()
    except DataError as error:
        if getattr(error.__cause__, "sqlstate", "") == DIVISION_BY_ZERO:
            raise LeaseLost("somebody else was faster") from error
        raise
    for statement, value in zip(statements, found, strict=True):
        if statement.receive is not None:
            statement.receive([[value]])


@lru_cache(SHAPES)
def _whole(shape: tuple[tuple[str, int | None, bool], ...]) -> str:
    """One statement of several: a write that hits another number of rows than it must divides by zero."""
    parts, picked = [], []
    for number, (sql, rows, receives) in enumerate(shape):
        returning = "" if receives else " RETURNING 1 AS hit"
        parts.append(f"w{number} AS ({sql}{returning})")
        if receives:
            picked.append(f"(SELECT * FROM w{number})")  # noqa: S608  # our own names
        elif rows is not None:
            count = f"(SELECT COUNT(*) FROM w{number})"  # noqa: S608  # our own names
            picked.append(f"1 / CASE WHEN {count} = {rows} THEN 1 ELSE 0 END")
        else:
            picked.append("1")
    return f"WITH {', '.join(parts)} SELECT {', '.join(picked)}"  # put together from our own statements


def _cursor() -> Any:
    """A cursor that lets the server bind parameters, so that it can keep the plan of what is sent again and again."""
    from psycopg import Cursor

    connection.ensure_connection()
    cursor: Any = Cursor(connection.connection)
    if connection.queries_logged:
        return connection.make_debug_cursor(cursor)
    return connection.make_cursor(cursor)


def _expect(statement: Statement, rows: int) -> None:
    if statement.rows is not None and rows != statement.rows:
        raise LeaseLost(
            f"{rows} rows instead of {statement.rows}: {statement.sql[:60]}"
        )


def database_now() -> datetime:
    """The database's clock; on SQLite that of this machine, the only one there is."""
    if connection.vendor != "postgresql":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {NOW}")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]
