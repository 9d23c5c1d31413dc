"""Sending writes: collected, and carried out in one round trip.

A change writes five to eight rows. PostgreSQL takes them in one message, SQLite, in process, one by one.
Correctness rests on the expected row counts: a statement that hits another number of rows raises LeaseLost, and nothing
of the transaction stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

from django.db import DataError, connection, transaction

from orchestrator.exceptions import LeaseLost

NOW = "STATEMENT_TIMESTAMP()"
"""PostgreSQL's clock, the one that leases are measured by; SQLite has that of its one machine."""


@dataclass(frozen=True)
class Later:
    """A moment in a row that PostgreSQL writes: when it carries the statement out, or so long after that."""

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
    """An SQL expression of ours in the place of a value."""

    sql: str


class Touched(NamedTuple):
    """Which rows a statement writes: new ones, the one of a key, those of a set of keys, or whichever meet a condition.

    One that takes a lock writes none, but what comes after it must see what was committed before.
    """

    table: str
    how: Literal["insert", "key", "keys", "condition", "lock"]
    key: object = None


T = TypeVar("T")


def chunks(many: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yields many in their order, so many at a time: a statement takes no more."""
    for begin in range(0, len(many), size):
        yield many[begin : begin + size]


Receive = Callable[[list[Any]], None]
"""Takes the rows that a statement returns, of one column each; there may be none."""


class Statement:
    """One write.

    Args:
        sql: its text.
        params: the values in it.
        touched: which rows it writes.
        rows: how many it must hit, None for any number.
        receive: takes the rows that it returns, if it returns any.
        new_keys: the keys of new rows, where they are known before.
    """

    __slots__ = ("_params", "_sql", "new_keys", "receive", "rows", "touched")

    def __init__(
        self,
        sql: str,
        params: Sequence[Any],
        touched: Touched,
        rows: int | None = None,
        receive: Receive | None = None,
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
        """What it has in common with writes that can go out as one with it; None of one that goes alone."""
        return None

    def returning(self, column: str, receive: Receive) -> Statement:
        """The same write, which returns a column of the rows that it hits."""
        sql = f"{self.sql} RETURNING {column}"
        return Statement(
            sql, self.params, self.touched, self.rows, receive, self.new_keys
        )


MANY_PARAMS = 4_000
"""More are sent in several messages: while Python makes one ready, a transaction stands idle."""

MANY_STATEMENTS = 16
"""More are sent as several: so many together seldom come again in the same form, for which alone it pays."""

SHAPES = 1000
"""How many statements' texts a process keeps."""

DIVISION_BY_ZERO = "22012"


class Batch:
    """Writes that go out in one message.

    PostgreSQL takes them as one statement, prepared once a connection, where it can: within one statement no write
    sees another, and of two that touch a row one is lost without an error. The batch knows which rows its statements
    touch, and sends them one after the other where they could meet.
    """

    def __init__(self, statements: Iterable[Statement]) -> None:
        self.statements = list(statements)

    def send(self) -> None:
        """Carries the writes out in the running transaction.

        Raises:
            LeaseLost: one of them did not hit the rows it had to; roll back.
        """
        if self._fits_in_one:
            _send_as_one(self.statements)
        else:
            _send_in_order(self.statements)

    def commit(self) -> None:
        """Carries the writes out as a transaction of their own, on PostgreSQL in one round trip where that can be.

        Inside the transaction of a test, which is the only one there may be, they are sent under a savepoint: a
        statement that fails would have PostgreSQL give up all of it.

        Raises:
            LeaseLost: one of them did not hit the rows it had to; nothing was written.
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
        """Return the first rows written that an earlier statement may have written too, or a lock; None if neither."""
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
    """Whether a write meets an earlier one of its table; new rows meet none, since they are not there before.

    A lock meets whatever there is.
    """
    if how in ("insert", "lock"):
        return how == "lock"
    return bool(seen) if how == "condition" else bool({*mine, "condition"} & seen)


def send(statements: Iterable[Statement]) -> None:
    """Carries writes out in the running transaction.

    Raises:
        LeaseLost: one of them did not hit the rows it had to; roll back.
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
    """The statements in their order, as many in a message as it should have parameters."""
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
    """One prepared statement: PostgreSQL reads and plans it once a connection."""
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
    """How the number of rows that a statement must hit is written; "" where it may hit any."""
    return "" if rows is None else "1" if rows == 1 else "%s"


@lru_cache(SHAPES)
def _whole(shape: tuple[tuple[str, str, bool], ...]) -> str:
    """One statement of several: a write that hits another number of rows than it must divides by zero."""
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
    """A cursor for what is sent again and again: PostgreSQL binds its parameters, and so can keep its plan."""
    if connection.vendor != "postgresql":
        return connection.cursor()
    from psycopg import Cursor  # noqa: PLC0415  only where the database is PostgreSQL

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


class Clock:
    """The database's time, told once and carried on by this process's own clock, so that no visit has to ask for it."""

    def __init__(self, now: datetime | None = None) -> None:
        self._told, self._at = now or datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        return self._told + timedelta(seconds=time.monotonic() - self._at)


def at_commit() -> Any:
    """The moment at which rows are written, for their columns: PostgreSQL knows it itself, and need not be asked."""
    return Later() if connection.vendor == "postgresql" else datetime.now(UTC)


def database_now() -> datetime:
    """The database's clock; on SQLite that of this machine, the only one there is."""
    if connection.vendor != "postgresql":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {NOW}")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]
