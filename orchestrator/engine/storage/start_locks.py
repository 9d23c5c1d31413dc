"""A lock between starting a process and keeping its events as unrouted.

A start looks for early events of its process. A delivery that finds no process keeps the event as unrouted. Neither
sees the other's uncommitted rows. So each start holds a shared lock on the process's id and key until its commit, and a
delivery keeps an event as unrouted only under the exclusive lock.

SQLite needs no lock: it has one writer at a time.
"""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

from django.db import connection

from orchestrator.engine.sql.batch import Statement, Touched

OURS = 0x50726F63
"""Tells our advisory locks from those of others in the same database."""

LOCKS = 1024
"""The number of locks: PostgreSQL keeps them in memory, and one transaction may start any number of processes."""


def start_locks(process_id: UUID | None, name: str, key: str) -> list[Statement]:
    """Return the statement that takes a start's shared locks; `process_id` is None where no sender can know it."""
    places = _places(process_id, name, key)
    if connection.vendor != "postgresql" or not places:
        return []
    locks = ", ".join(["pg_advisory_xact_lock_shared(%s, %s)"] * len(places))
    params = [number for place in places for number in (OURS, place)]
    return [Statement(f"SELECT {locks}", params, Touched("", "lock"))]


def lock_out_starts(process_id: UUID | None, name: str, key: str) -> bool:
    """Take the exclusive locks. Return whether no process of this id or key can start before this transaction ends."""
    if connection.vendor != "postgresql":
        return True
    places = _places(process_id, name, key)
    with connection.cursor() as cursor:
        for place in places:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [OURS, place])
            if not cursor.fetchone()[0]:
                return False
    return True


def _places(process_id: UUID | None, name: str, key: str) -> list[int]:
    """The numbers of the locks, in the order in which every transaction takes them."""
    names = [str(process_id)] if process_id is not None else []
    names += [f"{name}\n{key}"] if key else []
    digests = (blake2b(one.encode(), digest_size=8).digest() for one in names)
    return sorted({int.from_bytes(digest) % LOCKS for digest in digests})
