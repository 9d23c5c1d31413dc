"""Reading several tables as of one moment, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction


@contextmanager
def snapshot() -> Iterator[None]:
    """Let all reads in the block see one moment of the database; the block must not write, and delays no writer.

    Inside a transaction it changes nothing: the reads see what that transaction sees.
    """
    if connection.in_atomic_block:
        yield
        return
    with _deferred(), transaction.atomic(durable=True):
        if connection.vendor == "postgresql":
            connection.cursor().execute(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
            )
        yield


@contextmanager
def _deferred() -> Iterator[None]:
    """Make transactions on SQLite begin without the lock for writing, which all others here take at once."""
    ours: Any = connection
    if connection.vendor != "sqlite":
        yield
        return
    ours.ensure_connection()  # sets the mode
    usual, ours.transaction_mode = ours.transaction_mode, "DEFERRED"
    try:
        yield
    finally:
        ours.transaction_mode = usual
