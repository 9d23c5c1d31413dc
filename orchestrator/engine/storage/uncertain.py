"""Commits and claims of this worker of which it is not known whether the database carried them out."""

from __future__ import annotations

import os

from django.db import connection

_noted: set[int] = set()


def note() -> None:
    """Notes that the outcome of a commit or claim is unknown: it may have left work in this worker's name.

    The connection on which that happened is not used again.
    """
    _noted.add(os.getpid())
    if not connection.in_atomic_block:
        connection.close()


def noted() -> bool:
    """Whether work may stand in this worker's name that it does not know of."""
    return os.getpid() in _noted


def clear() -> None:
    """Notes that all work in this worker's name was freed."""
    _noted.discard(os.getpid())
