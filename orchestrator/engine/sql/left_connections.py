"""Connections as a function has left them: in a transaction, or lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from orchestrator.engine.sql.session import OWNED, end_connection


def others_in_transaction(db: BaseDatabaseWrapper) -> Collection[str]:
    """Return the aliases of this thread's other connections that are in a transaction.

    Args:
        db: the engine's connection; where the session is not the engine's, all connections are their owner's.
    """
    if len(connections.settings) == 1:
        return ()
    return [other.alias for other in _others(db) if _is_in_transaction(other)]


def close_spoilt_others(db: BaseDatabaseWrapper, besides: Collection[str]) -> bool:
    """Close the spoilt ones of this thread's other connections.

    Args:
        db: the engine's connection.
        besides: the aliases of those that stay in the transaction in which they were before.

    Returns:
        Whether one was in a transaction.
    """
    if len(connections.settings) == 1:
        return False
    found = [other for other in _others(db) if other.alias not in besides]
    return any([*map(close_spoilt, found)])


def _others(db: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
    if OWNED in vars(db):
        for other in connections.all(initialized_only=True):
            if other.alias != DEFAULT_DB_ALIAS:
                yield other


def close_spoilt(db: BaseDatabaseWrapper) -> bool:
    """Close a connection that was left in a transaction, which is undone, or that does not answer any more.

    Returns:
        Whether it was in a transaction.
    """
    if _is_in_transaction(db):
        end_connection(db)
        del connections[db.alias]
        return True
    vars(db)["health_check_done"] = False  # as when a request begins
    if db.errors_occurred:
        db.close_if_unusable_or_obsolete()
    return False


def _is_in_transaction(db: BaseDatabaseWrapper) -> bool:
    """Whether a connection is in a transaction, also in one that Django does not know of. Nothing is sent for it."""
    raw = db.connection
    if db.in_atomic_block or raw is None or not db.settings_dict["AUTOCOMMIT"]:
        return db.in_atomic_block
    if not db.autocommit:
        return True
    info = getattr(raw, "info", None)  # of psycopg, and of psycopg2
    if getattr(info, "transaction_status", 0) in (1, 2, 3):  # active, open, in error
        return True
    wrapper: Any = db
    try:
        return bool(getattr(raw, "in_transaction", False))  # of sqlite3
    except wrapper.Database.Error:
        return False  # it is closed
