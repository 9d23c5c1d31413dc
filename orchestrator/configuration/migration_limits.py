"""The limits of a PostgreSQL session while it migrates the database.

The limits of `POSTGRES_LIMITS` are for workers and requests. A migration may compute for longer between two statements,
and one statement of it may read a large table. Its waits for locks stay limited: all others queue behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from orchestrator.configuration.environment import POSTGRES_LIMITS

LIFTED = ("idle_in_transaction_session_timeout", "statement_timeout")

FIND = """
SELECT name FROM pg_settings
WHERE (name = %s AND setting = %s) OR (name = %s AND setting = %s)
"""
"""The limits that are ours; a limit that the project has set itself is another one, and stays."""

NAMES = "procession_lifted_limits"
"""The attribute of a connection with the limits that it had before."""


def lift_limits(*, using: str, plan: Sequence[Any] = (), **signal: object) -> None:
    """Lift our limits before migrations run; the receiver of `pre_migrate`."""
    db = connections[using]
    if not plan or not keeps_session(db):
        return
    ours = [part for name in LIFTED for part in (name, str(POSTGRES_LIMITS[name]))]
    with db.cursor() as cursor:
        cursor.execute(FIND, ours)
        names = [name for (name,) in cursor.fetchall()]
        for name in names:
            _set(cursor, name, "0")
    vars(db)[NAMES] = names


def restore_limits(*, using: str, **signal: object) -> None:
    """Set the lifted limits again after all migrations; the receiver of `post_migrate`."""
    db = connections[using]
    names = vars(db).pop(NAMES, ())
    if names:
        with db.cursor() as cursor:
            for name in names:
                _set(cursor, name, str(POSTGRES_LIMITS[name]))


@contextmanager
def unlimited_waits(db: BaseDatabaseWrapper) -> Iterator[None]:
    """Let statements of the block wait for locks without a limit: they hold up no others meanwhile."""
    if not keeps_session(db):
        yield
        return
    with db.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        (before,) = cursor.fetchone()
        _set(cursor, "lock_timeout", "0")
    try:
        yield
    finally:
        with db.cursor() as cursor:
            _set(cursor, "lock_timeout", before)


def keeps_session(db: BaseDatabaseWrapper) -> bool:
    """Whether a connection keeps its session; behind PgBouncer another client would get the settings."""
    pooled = db.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS", False)
    return db.vendor == "postgresql" and not pooled


def _set(cursor: Any, name: str, value: str) -> None:
    cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
