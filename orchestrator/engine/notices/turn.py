"""A lock by which one host at a time gathers notices and looks for dead queues."""

from __future__ import annotations

from django.db import connection

from orchestrator.engine.storage.beginnings import LOCKS, OURS

PLACE = LOCKS + 1
"""Beside the locks of beginning processes."""


def is_mine() -> bool:
    """Whether it is this transaction's turn, until it ends. SQLite has one writer at a time anyway."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [OURS, PLACE])
        return bool(cursor.fetchone()[0])
