"""Which of the database's errors pass by themselves, so that the same work may succeed a moment later.

A deadlock, a lost connection or a full disk is nobody's mistake and charges no attempt. A query that is wrong stays
wrong: SQLite reports it by the same class of error as a lock.
"""

from __future__ import annotations

from django.db import InterfaceError, OperationalError, connection

PASSING = ("08", "40", "53", "55", "57")
"""Classes of SQLSTATE: connection, rollback, resources, locks, operator intervention."""
QUERY_CANCELED = "57014"
SQLITE_PASSING = ("is locked", "is full", "disk i/o error", "unable to open")


def passes(error: Exception) -> bool:
    """Whether the error says something about the moment and not about the work."""
    if isinstance(error, InterfaceError):
        return True  # the connection was lost earlier
    if not isinstance(error, OperationalError):
        return False
    if connection.vendor != "postgresql":
        return any(word in str(error).lower() for word in SQLITE_PASSING)
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or (state[:2] in PASSING and state != QUERY_CANCELED)
