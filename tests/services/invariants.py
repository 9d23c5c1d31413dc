"""Asks after each test whether something broke that must hold always, without composing the same queries each time.

Composing them takes Django ten times longer than the database takes to answer.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from orchestrator.engine.invariants import OF_TABLES, process_findings
from orchestrator.engine.invariants.held_work import leases, retries
from orchestrator.engine.invariants.records import (
    outbox,
    overdue_work,
    unsettled_commands,
)
from orchestrator.engine.invariants.stored_sets import process_sets
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.sql.tables import commands, events, step_runs
from orchestrator.snapshot import snapshot

Check = Callable[[], Iterator[str]]
Query = tuple[str, Any]


def _of_processes() -> Iterator[str]:
    for some in process_sets():
        yield from process_findings(some)


PARTS: list[tuple[str, Any]] = [
    (f"{check.__name__}: ", part)
    for check in OF_TABLES
    for part in ((overdue_work, unsettled_commands) if check is outbox else (check,))
] + [("", _of_processes)]
"""The checks with their names. Of one of which a half depends on the time, the other half is asked in the quick way."""

ANY_WORK = [
    (f"SELECT 1 FROM {table.name} WHERE wake_at IS NOT NULL", ())  # noqa: S608  # names are the model's
    for table in (events, commands, step_runs)
]
"""Whether there is any work with a time: without, none is overdue."""

_on_nothing: dict[Check, Sequence[Query]] = {
    overdue_work: ANY_WORK,
    leases: ANY_WORK,
    retries: ANY_WORK,
}
"""What a check asks when nothing that it asks for is there. It goes no other way then, and finds nothing."""
_once: dict[Check, Sequence[Query]] = {}
"""What it asked the first time, when nothing was there."""


def broken(*, nobody_works: bool = False) -> list[str]:
    """Return what `violations` does; where nobody takes work, without what says that none has been taken for long."""
    with snapshot():
        allow_idle(LONG_IDLE)
        quiet = _on_nothing.keys() - _with_something()
        if nobody_works:
            quiet |= {overdue_work}
        return [
            f"{name}{finding}"
            for name, check in PARTS
            if check not in quiet
            for finding in _asked(check)
        ]


@contextmanager
def undone() -> Iterator[None]:
    """Undo in the end what the block did, because the invariants must hold after each test."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _with_something() -> set[Check]:
    """Those of the checks whose queries are known for which something is there, by one statement."""
    checks = list(_on_nothing)
    asked = " UNION ALL ".join(
        f"SELECT {number} WHERE {' OR '.join(f'EXISTS ({sql})' for sql, _ in _on_nothing[check])}"
        for number, check in enumerate(checks)
    )
    queries = [query for check in checks for query in _on_nothing[check]]
    params = [each for _, given in queries for each in given or ()]
    with connection.cursor() as cursor:
        cursor.execute(asked, params)
        return {checks[number] for (number,) in cursor.fetchall()}


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
