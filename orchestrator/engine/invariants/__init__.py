"""Invariants of the stored rows. Each finding names the broken rule and the row.

docs/reliability.md has the numbers of the rules. A part of the rows is checked in one snapshot: some processes with all
their rows, or what belongs to no process. The checks of tables query the part; the checks that replay histories get its
processes in sets. `chunks` divides the rows into parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from orchestrator.engine.invariants.bulk_operations import bulk
from orchestrator.engine.invariants.deadlines import deadlines
from orchestrator.engine.invariants.held_work import leases, retries
from orchestrator.engine.invariants.history import dense_history, joins, model
from orchestrator.engine.invariants.messages.event_checksums import body_hashes
from orchestrator.engine.invariants.messages.parked_events import parked
from orchestrator.engine.invariants.messages.verdicts import (
    discarded,
    ignored,
    keys,
    stale_ids,
)
from orchestrator.engine.invariants.progress import progress
from orchestrator.engine.invariants.records import (
    audit,
    conservation,
    fences,
    outbox,
    references,
)
from orchestrator.engine.invariants.statuses import incidents, statuses
from orchestrator.engine.invariants.stored_sets import (
    WHOLE,
    ProcessSet,
    StoredPart,
    process_sets,
)
from orchestrator.engine.invariants.workflow_rows import (
    maps,
    results,
    sub_processes,
    undoing,
)
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle, prefer_indexes
from orchestrator.models import ProcessInstance
from orchestrator.snapshot import snapshot

__all__ = [
    "CHECKS",
    "part_findings",
    "process_findings",
    "table_findings",
    "violations",
]

OF_TABLES: tuple[Callable[[StoredPart], Iterator[str]], ...] = (
    conservation,
    dense_history,
    progress,
    fences,
    results,
    outbox,
    audit,
    sub_processes,
    references,
    leases,
    retries,
    incidents,
    discarded,
    keys,
    body_hashes,
    bulk,
)

OF_PROCESSES: tuple[Callable[[ProcessSet], Iterator[str]], ...] = (
    model,
    joins,
    maps,
    parked,
    undoing,
    statuses,
    deadlines,
    ignored,
    stale_ids,
)

CHECKS = (*OF_TABLES, *OF_PROCESSES)


class ProgressBar(Protocol):
    """A progress bar."""

    def update(self, steps: int) -> object: ...


ShowProgress = Callable[[str, int], AbstractContextManager[ProgressBar]]
"""Starts a progress bar for a part of the work, with its name and its number of steps."""


def violations(shown: ShowProgress | None = None) -> list[str]:
    """Return the findings of all checks in all rows, as of one moment: for tests and small databases.

    Args:
        shown: starts progress bars; None shows no progress.
    """
    shown = shown or _unseen
    with snapshot():
        allow_idle(LONG_IDLE)
        found: list[str] = []
        with shown("Tables", len(OF_TABLES)) as bar:
            for check in OF_TABLES:
                found += table_findings(check)
                bar.update(1)
        with shown("Processes", ProcessInstance.objects.count()) as bar:
            for some in process_sets():
                found += process_findings(some)
                bar.update(len(some))
        return found


def part_findings(part: StoredPart) -> list[str]:
    """Return the findings in a part of the rows, as of one moment."""
    with snapshot():
        allow_idle(LONG_IDLE)
        prefer_indexes()
        found: list[str] = []
        for check in OF_TABLES:
            found += table_findings(check, part)
        if not part.outside:
            for some in process_sets(part):
                found += process_findings(some)
        return found


def table_findings(
    check: Callable[[StoredPart], Iterator[str]], part: StoredPart = WHOLE
) -> Iterator[str]:
    """Return the findings of a check in a part of the rows, each with its name."""
    return (f"{check.__name__}: {finding}" for finding in check(part))


def process_findings(some: ProcessSet) -> Iterator[str]:
    """Yield the findings in some processes, each with the name of its check."""
    for check in OF_PROCESSES:
        for finding in check(some):
            yield f"{check.__name__}: {finding}"


class _Unseen:
    def update(self, steps: int) -> None:
        pass


def _unseen(part: str, steps: int) -> Any:
    return nullcontext(_Unseen())
