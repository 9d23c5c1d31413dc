"""How long a transaction may stand idle: PostgreSQL ends the session of one that nothing was heard of for longer.

So a worker that stands still holds its rows for a moment only. Work that keeps Python busy for longer, and many times
longer on a busy machine, asks for the time it needs.
"""

from __future__ import annotations

from django.db import connection

LONG = 60.0
"""Seconds for what has the size of a whole workflow: making its plan, telling its history again."""

FEW_ROWS = 200
"""Python makes this many rows in no time on any machine."""

SECONDS_A_ROW = 0.02

NAME = "idle_in_transaction_session_timeout"
RAISE = (
    f"SELECT set_config(name, %s, true) FROM pg_settings WHERE name = '{NAME}'"  # noqa: S608  # our own text
    " AND setting::bigint BETWEEN 1 AND %s"
)
"""Milliseconds, until the end of the transaction; where there is no limit, or a longer one, that stays."""


def allow(seconds: float) -> None:
    """Lets the running transaction, if there is one, stand idle for so long. SQLite does not count."""
    if connection.vendor != "postgresql" or not connection.in_atomic_block:
        return
    limit = int(seconds * 1000)
    with connection.cursor() as cursor:
        cursor.execute(RAISE, [str(limit), limit])


def allow_rows(number: int) -> None:
    """Lets the running transaction stand idle for as long as making so many rows may take."""
    if number > FEW_ROWS:
        allow(max(number * SECONDS_A_ROW, 10))
