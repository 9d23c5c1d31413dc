"""How long processes are kept after their end, and with them their events."""

from __future__ import annotations

from datetime import timedelta

from orchestrator import registry
from orchestrator.conf import conf

ALL_OTHERS = "*"
"""Stands for the definitions that are not named."""


def retention() -> dict[str, timedelta]:
    """How long ended processes are kept, as definitions and settings say; what is kept for ever is not in it.

    The newest version of a definition says so for the processes of all its versions, also of those that are gone.
    """
    found = {
        definition.name: definition.retention
        for definition in registry.newest()
        if definition.retention is not None
    }
    if days := conf().RETENTION_DAYS:
        found.setdefault(ALL_OTHERS, timedelta(days=days))
    return found
