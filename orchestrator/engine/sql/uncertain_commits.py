"""Commits and claims of this worker whose outcome is unknown."""

from __future__ import annotations

import os

from django.db import connection

_noted: set[int] = set()


def note() -> None:
    """Note that the outcome of a commit or claim is unknown: this worker may hold work without knowing it.

    The connection is closed, and not used again.
    """
    _noted.add(os.getpid())
    if not connection.in_atomic_block:
        connection.close()


def is_noted() -> bool:
    """Whether this worker may hold work without knowing it."""
    return os.getpid() in _noted


def clear() -> None:
    """Note that all leases of this worker were ended."""
    _noted.discard(os.getpid())
