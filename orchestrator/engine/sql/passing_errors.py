"""The errors of the database that pass by themselves: the same work may succeed a moment later.

A deadlock, an ended session or a full disk is no mistake of the work: no attempt is charged. A wrong query stays wrong.
The error's code decides, never its class: the driver reports an ended session as an OperationalError, an
InterfaceError, an InternalError or a bare DatabaseError.
"""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError
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
    if isinstance(error, TransactionManagementError):
        return passes(error.__cause__)  # the error that broke the transaction before
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
    said = error.__cause__
    if isinstance(error, TransactionManagementError) and said is not None:
        return is_conflict(said)
    state = getattr(said, "sqlstate", None) or ""
    locked = _sqlite_code(said) in SQLITE_LOCKED
    return locked or state in LOCKED or state[:2] == ROLLED_BACK


def is_idle_timeout(error: BaseException) -> bool:
    """Whether the server ended the session because its transaction stood idle."""
    return getattr(error.__cause__, "sqlstate", None) == STOOD_IDLE


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
    code: int = getattr(said, "sqlite_errorcode", 0)
    return code & 0xFF
