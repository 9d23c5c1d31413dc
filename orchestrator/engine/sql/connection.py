"""The database's connection: errors that pass by themselves, commits with an unknown outcome, idle transactions.

After an error that passes by itself the same work may succeed a moment later: a deadlock, an ended session or a full
disk is no mistake of the work, and no attempt is charged. A wrong query stays wrong. The error's code decides, never
its class: the driver reports an ended session as an OperationalError, an InterfaceError, an InternalError or a bare
DatabaseError.
"""

from __future__ import annotations

import os
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError

ROLLED_BACK = "40"
"""The class of rollbacks because of other transactions, such as a deadlock."""

CLASSES = ("08", ROLLED_BACK, "53", "57")
"""Classes of SQLSTATE: the connection, rollbacks because of others, resources, the server's operators."""

STOOD_IDLE = "25P03"
"""The server ended the session because its transaction stood idle."""

LOCKED = ("55006", "55P03")
"""An object is in use, or a lock was not free in time."""

STATES = frozenset(
    (
        *LOCKED,
        STOOD_IDLE,
        "25P04",  # the same, because the transaction took too long
        "25006",  # read only: the server has become a replica, or protects the rest of its disk
        "58030",  # input or output failed
    )
)
"""SQLSTATEs of other classes, whose other codes are mistakes."""

QUERY_CANCELED = "57014"
"""A person or the statement timeout cancelled the query: it may take as long the next time."""

STALE_PLAN = ("0A000", "RevalidateCachedQuery")
"""A statement was prepared before its table was changed; a new session prepares it anew."""

SQLITE_LOCKED = (5, 6)
"""SQLITE_BUSY and SQLITE_LOCKED."""

SQLITE_CODES = frozenset(
    (
        *SQLITE_LOCKED,
        8,  # SQLITE_READONLY
        10,  # SQLITE_IOERR
        13,  # SQLITE_FULL
        14,  # SQLITE_CANTOPEN
        15,  # SQLITE_PROTOCOL: other processes kept the write-ahead log locked
        17,  # SQLITE_SCHEMA
    )
)
"""SQLite's primary result codes."""

UNTOLD = (OperationalError, InterfaceError)
"""The classes of an error without a code that passes: the connection was lost before the database answered."""


def passes(error: BaseException | None) -> bool:
    """Whether the error concerns the moment and not the work."""
    error = _first_error(error)
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    said = error.__cause__
    if hasattr(said, "sqlstate"):
        return _passes_on_postgresql(error, said)
    if type(said).__module__ == "sqlite3":
        return _sqlite_code(said) in SQLITE_CODES
    return isinstance(error, UNTOLD)


def is_conflict(error: BaseException) -> bool:
    """Whether a passing error comes from other transactions at the same rows."""
    said = getattr(_first_error(error), "__cause__", None)
    state = getattr(said, "sqlstate", None) or ""
    locked = _sqlite_code(said) in SQLITE_LOCKED
    return locked or state in LOCKED or state[:2] == ROLLED_BACK


def _first_error(error: BaseException | None) -> BaseException | None:
    """The error that broke a transaction, in place of those that only say that it is broken; None if none tells."""
    seen = set[int]()
    while isinstance(error, TransactionManagementError):
        if id(error) in seen:  # application code may raise an error from itself
            return None
        seen.add(id(error))
        error = error.__cause__
    return error


def is_idle_timeout(error: BaseException) -> bool:
    """Whether the server ended the session because its transaction stood idle."""
    return getattr(error.__cause__, "sqlstate", None) == STOOD_IDLE


def is_aborted(db: BaseDatabaseWrapper) -> bool:
    """Whether the running transaction can only be rolled back: a statement has failed, or the session was lost."""
    if not db.in_atomic_block or db.needs_rollback or db.connection is None:
        return db.in_atomic_block
    if getattr(db.connection, "closed", False):  # of psycopg
        return True
    info = getattr(db.connection, "info", None)
    status = getattr(info, "transaction_status", None)  # of psycopg
    return getattr(status, "name", "") == "INERROR"


def rollback_error(db: BaseDatabaseWrapper) -> BaseException | None:
    """Return the last error because of which Django has rolled a transaction of the connection back, or will do so."""
    found: BaseException | None = getattr(db, "rollback_exc", None)
    return found


def _passes_on_postgresql(error: Exception, said: Any) -> bool:
    state = said.sqlstate
    if state is None:
        lost = (*UNTOLD, InternalError)
        return isinstance(error, lost) or type(error) is DatabaseError
    if state == STALE_PLAN[0]:
        return bool(said.diag.source_function == STALE_PLAN[1])
    return state in STATES or (state[:2] in CLASSES and state != QUERY_CANCELED)


def _sqlite_code(said: BaseException | None) -> int:
    """SQLite's primary result code, without its extension; 0 for another error."""
    return int(getattr(said, "sqlite_errorcode", 0)) & 0xFF


_uncertain: set[int] = set()
"""The processes that have commits or claims whose outcome is unknown."""


def note_uncertain_commit() -> None:
    """Note that the outcome of a commit or claim is unknown: this worker may hold work without knowing it.

    The connection is closed, and not used again.
    """
    _uncertain.add(os.getpid())
    if not connection.in_atomic_block:
        connection.close()


def has_uncertain_commit() -> bool:
    """Whether this worker may hold work without knowing it."""
    return os.getpid() in _uncertain


def clear_uncertain_commits() -> None:
    """Note that all leases of this worker were ended."""
    _uncertain.discard(os.getpid())


LONG_IDLE = 60.0
"""Seconds that a transaction may stand idle for work on a whole workflow: making its plan, replaying its history."""

FEW_ROWS = 200
"""Python makes this many rows within the usual limit on any machine."""

SECONDS_A_ROW = 0.02

IDLE_TIMEOUT = "idle_in_transaction_session_timeout"
"""PostgreSQL ends a session whose transaction stands idle for longer: a stalled worker locks rows for a moment only.

Work that keeps Python busy for longer raises the limit for its transaction.
"""

RAISE_TIMEOUT = (
    f"SELECT set_config(name, %s, true) FROM pg_settings WHERE name = '{IDLE_TIMEOUT}'"  # noqa: S608  # our own text
    " AND setting::bigint BETWEEN 1 AND %s"
)
"""Raises the limit, in milliseconds, until the end of the transaction; a longer limit, or none, stays."""


def allow_idle(seconds: float) -> None:
    """Let the running transaction, if there is one, stand idle for some seconds. SQLite has no limit."""
    if connection.vendor != "postgresql" or not connection.in_atomic_block:
        return
    limit = int(seconds * 1000)
    with connection.cursor() as cursor:
        cursor.execute(RAISE_TIMEOUT, [str(limit), limit])
    vars(connections[DEFAULT_DB_ALIAS])[RAISED] = limit


def prefer_indexes() -> None:
    """Have the running transaction read a small part of large tables by their indexes, on PostgreSQL.

    For a part, PostgreSQL may expect more rows than there are, and then reads whole tables, by several processes.
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL enable_seqscan = off; SET LOCAL max_parallel_workers_per_gather = 0"
        )


RAISED = "procession_idle_limit"
"""The attribute of a connection that has the limit, in milliseconds, to which its transaction has raised its own."""


def idle_limit_call(db: BaseDatabaseWrapper) -> str:
    """Return the expression that raises the limit again after a reset, with a comma; "" if it was not raised."""
    limit = vars(db).get(RAISED) if db.in_atomic_block else None
    if limit is None:
        return ""
    again = RAISE_TIMEOUT % (f"'{limit}'", limit)
    return f", ({again})"


def forget_idle_limit(db: BaseDatabaseWrapper) -> None:
    """Forget that a transaction, which has ended, had raised the limit."""
    vars(db).pop(RAISED, None)


def allow_idle_for_rows(number: int) -> None:
    """Let the running transaction stand idle for as long as Python may take to make this number of rows."""
    if number > FEW_ROWS:
        allow_idle(max(number * SECONDS_A_ROW, 10))
