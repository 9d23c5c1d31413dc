"""Stored graphs that differ from the running code's in former names of messages alone."""

from __future__ import annotations

import re
from typing import Any

from orchestrator.definition.codec import digest
from orchestrator.definition.messages import renamed

WORD = re.compile(r"\w+")


def is_renamed(graph: dict[str, Any], fingerprint: str) -> bool:
    """Return whether a stored graph differs from the one with a fingerprint in former names of messages alone."""
    now = with_current_names(graph)
    return now != graph and digest(now) == fingerprint


def with_current_names(graph: dict[str, Any]) -> dict[str, Any]:
    """Return a stored graph with the current names of messages that have former names."""

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(named, value))
        return WORD.sub(lambda found: renamed.get(found[0], found[0]), value)

    places = ("event", "commands", "at_once", "detail")
    parts = {
        part: [
            {
                key: named(value) if key in places else value
                for key, value in one.items()
            }
            for one in graph[part]
        ]
        for part in ("nodes", "edges", "dispositions")
    }
    return graph | parts
