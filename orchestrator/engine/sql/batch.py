"""Collecting writes, and sending them in one round trip.

A change writes five to eight rows. PostgreSQL takes them in one message, SQLite, in process, one by one. Correctness
rests on the expected row counts: a statement that hits another number of rows raises LeaseLost, which rolls all back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    DataError,
    connection,
    connections,
    transaction,
)

from orchestrator.exceptions import LeaseLost

NOW = "STATEMENT_TIMESTAMP()"
"""PostgreSQL's clock, which measures leases; SQLite uses the clock of its one machine."""


@dataclass(frozen=True)
class Later:
    """A moment that PostgreSQL writes into a row: the time of the statement, or a while after it."""

    by: timedelta = timedelta()

    def __add__(self, more: timedelta) -> Later:
        return Later(self.by + more)

    @property
    def sql(self) -> str:
        if not self.by:
            return NOW
        return (
            f"{NOW} + INTERVAL '{self.by / timedelta(microseconds=1):.0f} microseconds'"
        )


class Raw(NamedTuple):
    """An SQL expression in the place of a value."""

    sql: str


class Touched(NamedTuple):
    """The rows that a statement writes: new rows, the row of a key, the rows of a set of keys, or those of a condition.

    A statement that takes a lock writes no rows, but the statements after it must see all earlier commits.
    """

    table: str
    how: Literal["insert", "key", "keys", "condition", "lock"]
    key: object = None


T = TypeVar("T")


def chunks(many: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield slices of at most `size` items, in their order: a statement takes no more."""
    for begin in range(0, len(many), size):
        yield many[begin : begin + size]


RowReceiver = Callable[[list[Any]], None]
"""Called with the rows that a statement returns, of one column each; there may be none."""


class Statement:
    """One write.

    Args:
        sql: its text.
        params: its parameters.
        touched: the rows that it writes.
        rows: the number of rows that it must hit, None for any number.
        receive: called with the rows that it returns, if it returns any.
        new_keys: the keys of new rows, where they are known before.
    """

    __slots__ = ("_params", "_sql", "new_keys", "receive", "rows", "touched")

    def __init__(
        self,
        sql: str,
        params: Sequence[Any],
        touched: Touched,
        rows: int | None = None,
        receive: RowReceiver | None = None,
        new_keys: Sequence[object] = (),
    ) -> None:
        self._sql, self._params = sql, params
        self.touched, self.rows = touched, rows
        self.receive, self.new_keys = receive, new_keys

    @property
    def sql(self) -> str:
        return self._sql

    @property
    def params(self) -> Sequence[Any]:
        return self._params

    @property
    def form(self) -> object:
        """The same value for writes that can be merged; None for a write that goes alone."""
        return None

    def returning(self, column: str, receive: RowReceiver) -> Statement:
        """Return the same write, which also returns a column of the rows that it hits."""
        sql = f"{self.sql} RETURNING {column}"
        return Statement(
            sql, self.params, self.touched, self.rows, receive, self.new_keys
        )


MANY_PARAMS = 4_000
"""The most parameters in a message: while Python builds the message, the transaction stands idle."""

MANY_STATEMENTS = 16
"""The most statements in one: larger combinations seldom recur in the same form, and only recurrence pays."""

SHAPES = 1000
"""The number of statement texts that a process caches."""

DIVISION_BY_ZERO = "22012"


class Batch:
    """Writes that go out in one message.

    PostgreSQL takes them as one statement where possible, prepared once a connection. Within one statement no write
    sees another, and of two writes to a row one is lost without an error. The batch knows the rows of its statements,
    and sends them one after the other where two could meet.
    """

    def __init__(self, statements: Iterable[Statement]) -> None:
        self.statements = list(statements)

    def send(self) -> None:
        """Send the writes in the running transaction.

        Raises:
            LeaseLost: a write hit another number of rows than it must; roll back.
        """
        if self._fits_in_one:
            _send_as_one(self.statements)
        else:
            _send_in_order(self.statements)

    def commit(self) -> None:
        """Send the writes in a transaction of their own, on PostgreSQL in one round trip where possible.

        Inside a test's transaction, the only outer one that may run, they are sent under a savepoint: after a failed
        statement PostgreSQL would refuse the rest of that transaction.

        Raises:
            LeaseLost: a write hit another number of rows than it must; nothing was written.
        """
        if self._fits_in_one and not connection.in_atomic_block:
            _send_as_one(self.statements)
        else:
            with transaction.atomic(durable=True):
                self.send()

    @property
    def _fits_in_one(self) -> bool:
        if connection.vendor != "postgresql" or len(self.statements) > MANY_STATEMENTS:
            return False
        params = sum(len(statement.params) for statement in self.statements)
        return params <= MANY_PARAMS and self.meeting() is None

    def meeting(self) -> Touched | None:
        """Return the first rows that an earlier statement may have written too, or a lock; None if there are none."""
        before: dict[str, set[object]] = {}
        for statement in self.statements:
            table, how, key = touched = statement.touched
            seen = before.setdefault(table, set())
            mine = key if how == "keys" else {key if how == "key" else how}
            assert isinstance(mine, Set)  # noqa: S101  # see Touched
            if _meet(seen, how, mine):
                return touched
            seen |= {*mine, *statement.new_keys}
        return None


def _meet(seen: set[object], how: str, mine: Set[object]) -> bool:
    """Whether a write meets an earlier one of its table; new rows meet none, since no earlier write can hit them.

    A lock meets every write.
    """
    if how in ("insert", "lock"):
        return how == "lock"
    return bool(seen) if how == "condition" else bool({*mine, "condition"} & seen)


def send(statements: Iterable[Statement]) -> None:
    """Send writes in the running transaction.

    Raises:
        LeaseLost: a write hit another number of rows than it must; roll back.
    """
    if batch := list(statements):
        Batch(batch).send()


def _send_in_order(statements: Sequence[Statement]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for message in _messages(statements):
                _send_message(cursor, message)
        else:
            for statement in statements:
                cursor.execute(statement.sql, statement.params)
                if statement.receive is not None:
                    # SQLite counts the rows only now.
                    statement.receive(cursor.fetchall())
                _expect(statement, cursor.rowcount)


def _messages(statements: Iterable[Statement]) -> Iterator[list[Statement]]:
    """The statements in their order, split into messages by their numbers of parameters."""
    message: list[Statement] = []
    params = 0
    for statement in statements:
        params += len(statement.params)
        if message and params > MANY_PARAMS:
            yield message
            message, params = [], len(statement.params)
        message.append(statement)
    yield message


def _send_message(cursor: Any, statements: Sequence[Statement]) -> None:
    cursor.execute(
        ";\n".join(statement.sql for statement in statements),
        [param for statement in statements for param in statement.params],
    )
    for statement in statements:
        _expect(statement, cursor.rowcount)
        if statement.receive is not None:
            statement.receive(cursor.fetchall())
        cursor.nextset()


def _send_as_one(statements: Sequence[Statement]) -> None:
    """Send one prepared statement: PostgreSQL parses and plans it once a connection."""
    params = [param for statement in statements for param in statement.params]
    params += [s.rows for s in statements if s.rows not in (None, 1)]
    shape = tuple((s.sql, _number(s.rows), s.receive is not None) for s in statements)
    try:
        with prepared_cursor() as cursor:
            cursor.execute(_whole(shape), params)
            found = cursor.fetchone()
    except DataError as error:
        if getattr(error.__cause__, "sqlstate", "") == DIVISION_BY_ZERO:
            raise LeaseLost("somebody else was faster") from error
        raise
    receivers = [s.receive for s in statements if s.receive is not None]
    for receive, values in zip(receivers, found, strict=False):
        receive([[value] for value in values])


def _number(rows: int | None) -> str:
    """The SQL for the number of rows that a statement must hit; "" where it may hit any."""
    return "" if rows is None else "1" if rows == 1 else "%s"


@lru_cache(SHAPES)
def _whole(shape: tuple[tuple[str, str, bool], ...]) -> str:
    """Combine statements into one: a write that hits another number of rows than it must divides by zero."""
    parts, picked, checked = [], [], []
    for number, (sql, rows, receives) in enumerate(shape):
        returning = "" if receives else " RETURNING 1 AS hit"
        parts.append(f"w{number} AS ({sql}{returning})")
        if receives:
            picked.append(f"ARRAY(SELECT * FROM w{number})")  # noqa: S608  # our own names
        if rows:
            count = f"(SELECT COUNT(*) FROM w{number})"  # noqa: S608  # our own names
            checked.append(f"1 / CASE WHEN {count} = {rows} THEN 1 ELSE 0 END")
    return f"WITH {', '.join(parts)} SELECT {', '.join([*picked, *checked]) or 1}"  # our own statements


def prepared_cursor() -> Any:
    """Return a cursor for recurring statements: PostgreSQL binds their parameters, and so can cache their plans."""
    db = connections[DEFAULT_DB_ALIAS]  # once: each look through `connection` costs
    if db.vendor != "postgresql":
        return db.cursor()
    from psycopg import Cursor  # noqa: PLC0415  only where the database is PostgreSQL

    db.ensure_connection()
    cursor: Any = Cursor(db.connection)
    return db.make_debug_cursor(cursor) if db.queries_logged else db.make_cursor(cursor)


def _expect(statement: Statement, rows: int) -> None:
    if statement.rows is not None and rows != statement.rows:
        raise LeaseLost(
            f"{rows} rows instead of {statement.rows}: {statement.sql[:60]}"
        )


CLOCK_SECONDS = 10.0
"""The time after which a `Clock` asks the database again, whose clock may have gone back meanwhile."""


class Clock:
    """The database's time, read and continued by this machine's monotonic clock, so that no quick visit has to ask."""

    def __init__(self, now: datetime | None = None) -> None:
        self._told, self._at = now or datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        if time.monotonic() - self._at > CLOCK_SECONDS:
            self._told, self._at = database_now(), time.monotonic()
        return self._told + timedelta(seconds=time.monotonic() - self._at)


def at_commit() -> Any:
    """Return the moment of the write, for a row's columns: PostgreSQL fills it in, without a query."""
    return Later() if connection.vendor == "postgresql" else datetime.now(UTC)


def database_now() -> datetime:
    """Return the database's time; on SQLite that of this machine, the only one."""
    if connection.vendor != "postgresql":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {NOW}")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]
