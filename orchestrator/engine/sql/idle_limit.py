"""The limit on idle transactions: PostgreSQL ends a session whose transaction stands idle for longer.

So a stalled worker locks its rows for a moment only. Work that keeps Python busy for longer raises the limit for its
transaction.
"""

from __future__ import annotations

from django.db import connection

LONG = 60.0
"""Seconds for work on a whole workflow: making its plan, replaying its history."""

FEW_ROWS = 200
"""Python makes this many rows within the usual limit on any machine."""

SECONDS_A_ROW = 0.02

NAME = "idle_in_transaction_session_timeout"
RAISE = (
    f"SELECT set_config(name, %s, true) FROM pg_settings WHERE name = '{NAME}'"  # noqa: S608  # our own text
    " AND setting::bigint BETWEEN 1 AND %s"
)
"""Raises the limit, in milliseconds, until the end of the transaction; a longer limit, or none, stays."""


def allow(seconds: float) -> None:
    """Let the running transaction, if there is one, stand idle for some seconds. SQLite has no limit."""
    if connection.vendor != "postgresql" or not connection.in_atomic_block:
        return
    limit = int(seconds * 1000)
    with connection.cursor() as cursor:
        cursor.execute(RAISE, [str(limit), limit])


def allow_rows(number: int) -> None:
    """Let the running transaction stand idle for as long as Python may take to make this number of rows."""
    if number > FEW_ROWS:
        allow(max(number * SECONDS_A_ROW, 10))
