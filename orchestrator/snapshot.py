"""Reading several tables as of one moment, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction


@contextmanager
def snapshot() -> Iterator[None]:
    """Lets all that is read within belong to one moment; nothing may be written, and nobody waits for it.

    Inside a transaction it changes nothing: what that one sees is what is read.
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
    """Has SQLite take no lock for writing as a transaction begins, as all others do here."""
    ours: Any = connection
    if connection.vendor != "sqlite":
        yield
        return
    ours.ensure_connection()  # else it has no mode yet
    usual, ours.transaction_mode = ours.transaction_mode, "DEFERRED"
    try:
        yield
    finally:
        ours.transaction_mode = usual
