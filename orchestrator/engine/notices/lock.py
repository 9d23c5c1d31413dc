"""A lock by which one host at a time gathers notices and looks for dead queues."""

from __future__ import annotations

from django.db import connection

from orchestrator.engine.storage.start_locks import LOCKS, OURS

PLACE = LOCKS + 1
"""The number of the lock, after those of starting processes."""


def acquire_turn() -> bool:
    """Take the lock until the transaction ends; return whether it was free. SQLite has one writer at a time anyway."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [OURS, PLACE])
        return bool(cursor.fetchone()[0])
