"""Connections as a function has left them: in a transaction, or lost."""

from __future__ import annotations

from contextlib import suppress

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


def close_spoilt(db: BaseDatabaseWrapper) -> bool:
    """Close a connection that was left in a transaction, which is undone, or that does not answer any more.

    Returns:
        Whether it was in a transaction.
    """
    if _is_in_transaction(db):
        with suppress(Exception):  # it may be lost
            if db.connection is not None:
                db.connection.close()
        del connections[db.alias]
        return True
    if db.errors_occurred:
        db.close_if_unusable_or_obsolete()
    return False


def _is_in_transaction(db: BaseDatabaseWrapper) -> bool:
    """Whether a connection is in a transaction, also in one that Django does not know of. Nothing is sent for it."""
    raw = db.connection
    if db.in_atomic_block or raw is None or not db.settings_dict["AUTOCOMMIT"]:
        return db.in_atomic_block
    info = getattr(raw, "info", None)  # of psycopg
    status = getattr(getattr(info, "transaction_status", None), "name", "IDLE")
    return (
        not db.autocommit
        or status in ("ACTIVE", "INTRANS", "INERROR")
        or bool(getattr(raw, "in_transaction", False))  # of sqlite3
    )
