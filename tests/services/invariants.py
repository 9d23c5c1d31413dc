"""Asks after each test whether something broke that must hold always, without composing the same queries each time.

Composing them takes Django ten times longer than the database takes to answer.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db import connection

from orchestrator.engine.invariants import CHECKS
from orchestrator.snapshot import snapshot

Check = Callable[[], Iterator[str]]
Query = tuple[str, Any]

_on_nothing: dict[Check, Sequence[Query]] = {}
"""What a check asks when nothing that it asks for is there. It goes no other way then, and finds nothing."""
_once: dict[Check, Sequence[Query]] = {}
"""What it asked the first time, when nothing was there."""


def broken() -> list[str]:
    """Return what `violations` does."""
    with snapshot():
        return [
            f"{check.__name__}: {finding}"
            for check in CHECKS
            if not _finds_nothing(check)
            for finding in _asked(check)
        ]


def _finds_nothing(check: Check) -> bool:
    queries = _on_nothing.get(check)
    return queries is not None and not any(map(_has_rows, queries))


def _asked(check: Check) -> list[str]:
    """Let the check ask; remember its queries if there was nothing and they are what they were, free of the time."""
    queries: list[Query] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        queries.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        findings = list(check())
    if check not in _on_nothing and not any(map(_has_rows, queries)):
        if queries == _once.get(check):
            _on_nothing[check] = queries
        _once[check] = queries
    return findings


def _has_rows(query: Query) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(*query)
        return cursor.fetchone() is not None
