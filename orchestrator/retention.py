"""How long ended processes and their events are kept."""

from __future__ import annotations

from datetime import timedelta

from orchestrator import registry
from orchestrator.configuration.conf import conf

ALL_OTHERS = "*"
"""Stands for all definitions without an entry of their own."""


def retention() -> dict[str, timedelta]:
    """Return how long the ended processes of each definition are kept; those without an entry are kept.

    The newest version of a definition decides for the processes of all its versions, also of those without code.
    """
    found = {
        definition.name: definition.retention
        for definition in registry.newest_definitions()
        if definition.retention is not None
    }
    if days := conf().RETENTION_DAYS:
        found.setdefault(ALL_OTHERS, timedelta(days=days))
    return found
