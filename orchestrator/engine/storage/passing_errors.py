"""Which of the database's errors pass by themselves, so that the same work may succeed a moment later.

A deadlock, an ended session or a full disk is no mistake of the work: no attempt is charged. A wrong query stays wrong.
The error's code decides, never the class that the driver makes of it: an ended session comes as an OperationalError, an
InterfaceError, an InternalError or a bare DatabaseError.
"""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError
from django.db.transaction import TransactionManagementError

ROLLED_BACK = "40"
"""The class of what was rolled back for others' sake, such as a deadlock."""

CLASSES = ("08", ROLLED_BACK, "53", "57")
"""Classes of SQLSTATE: the connection, what was rolled back for others' sake, resources, those who run the server."""

STOOD_IDLE = "25P03"
"""The session was ended because its transaction stood idle."""

LOCKED = ("55006", "55P03")
"""In use, or a lock was not to be had in time."""

STATES = frozenset(
    (
        *LOCKED,
        STOOD_IDLE,
        "25P04",  # the same, because its transaction took too long
        "25006",  # read only: the server has become a replica, or protects what is left of its disk
        "58030",  # input or output failed
    )
)
"""SQLSTATEs of other classes, most of which are somebody's mistake."""

QUERY_CANCELED = "57014"
"""By somebody, or for its own length: it may be as long the next time."""

STALE_PLAN = ("0A000", "RevalidateCachedQuery")
"""A statement that was prepared before its table was changed; a new session knows nothing of it."""

SQLITE_LOCKED = (5, 6)
"""SQLITE_BUSY and SQLITE_LOCKED."""

SQLITE_CODES = frozenset(
    (
        *SQLITE_LOCKED,
        8,  # SQLITE_READONLY
        10,  # SQLITE_IOERR
        13,  # SQLITE_FULL
        14,  # SQLITE_CANTOPEN
        15,  # SQLITE_PROTOCOL: others kept the log of writes to themselves
        17,  # SQLITE_SCHEMA
    )
)
"""SQLite's primary result codes."""

UNTOLD = (OperationalError, InterfaceError)
"""What an error without a code must be to pass: the connection was lost before the database could say anything."""


def passes(error: BaseException | None) -> bool:
    """Whether the error says something about the moment and not about the work."""
    if isinstance(error, TransactionManagementError):
        return passes(error.__cause__)  # what had spoilt the transaction before
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    said = error.__cause__
    if hasattr(said, "sqlstate"):
        return _passes_on_postgresql(error, said)
    if type(said).__module__ == "sqlite3":
        return _sqlite_code(said) in SQLITE_CODES
    return isinstance(error, UNTOLD)


def in_each_others_way(error: BaseException) -> bool:
    """Whether what passes has to do with others who were at the same rows."""
    said = error.__cause__
    if isinstance(error, TransactionManagementError) and said is not None:
        return in_each_others_way(said)
    state = getattr(said, "sqlstate", None) or ""
    locked = _sqlite_code(said) in SQLITE_LOCKED
    return locked or state in LOCKED or state[:2] == ROLLED_BACK


def stood_idle(error: BaseException) -> bool:
    """Whether the session was ended because its transaction stood idle."""
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
    """SQLite's primary result code, without what it adds to tell more; 0 if it is none of its errors."""
    code: int = getattr(said, "sqlite_errorcode", 0)
    return code & 0xFF
