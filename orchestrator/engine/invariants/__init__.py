"""Invariants of the stored rows. Each finding names the broken rule and the row.

docs/reliability.md has the numbers of the rules. All checks read one snapshot. Most checks query whole tables; the
checks that replay histories get the processes in sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from orchestrator.engine.invariants.bulk_operations import bulk
from orchestrator.engine.invariants.history import dense_history, joins, model
from orchestrator.engine.invariants.parked_events import parked
from orchestrator.engine.invariants.progress import progress
from orchestrator.engine.invariants.records import (
    audit,
    conservation,
    fences,
    outbox,
    references,
)
from orchestrator.engine.invariants.stored_sets import ProcessSet, process_sets
from orchestrator.engine.invariants.workflow_rows import (
    maps,
    results,
    sub_processes,
    undoing,
)
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.models import ProcessInstance
from orchestrator.snapshot import snapshot

__all__ = ["CHECKS", "process_findings", "table_findings", "violations"]

OF_TABLES: tuple[Callable[[], Iterator[str]], ...] = (
    conservation,
    dense_history,
    progress,
    fences,
    results,
    outbox,
    audit,
    sub_processes,
    references,
    bulk,
)

OF_PROCESSES: tuple[Callable[[ProcessSet], Iterator[str]], ...] = (
    model,
    joins,
    maps,
    parked,
    undoing,
)

CHECKS = (*OF_TABLES, *OF_PROCESSES)


class ProgressBar(Protocol):
    """A progress bar."""

    def update(self, steps: int) -> object: ...


ShowProgress = Callable[[str, int], AbstractContextManager[ProgressBar]]
"""Starts a progress bar for a part of the work, with its name and its number of steps."""


def violations(shown: ShowProgress | None = None) -> list[str]:
    """Return the findings of all checks.

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


def table_findings(check: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Return the findings of a check, each with its name."""
    return (f"{check.__name__}: {finding}" for finding in check())


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
