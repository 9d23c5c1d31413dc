"""What must always hold, asked of the stored rows. Each finding says which rule is broken and where.

The numbers are those of docs/reliability.md. A check reads them as of one moment. Most ask the tables as a whole; those
that tell histories again are given the processes in sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from orchestrator.engine.invariants.bulk import bulk
from orchestrator.engine.invariants.history import dense_history, joins, model
from orchestrator.engine.invariants.ledger import (
    audit,
    conservation,
    fences,
    outbox,
    references,
)
from orchestrator.engine.invariants.progress import progress
from orchestrator.engine.invariants.reading import ProcessSet, process_sets
from orchestrator.engine.invariants.untaken import parked
from orchestrator.engine.invariants.workflow_rows import (
    maps,
    results,
    sub_processes,
    undoing,
)
from orchestrator.engine.storage import idle_limit
from orchestrator.models import ProcessInstance
from orchestrator.snapshot import snapshot

__all__ = ["CHECKS", "in_processes", "in_tables", "violations"]

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


class Bar(Protocol):
    """A progress bar."""

    def update(self, steps: int) -> object: ...


Shown = Callable[[str, int], AbstractContextManager[Bar]]
"""Begins to show a part of the work, by its name and its number of steps."""


def violations(shown: Shown | None = None) -> list[str]:
    """Every broken rule that the stored rows show; none when all is well.

    Args:
        shown: shows the progress; None for none.
    """
    shown = shown or _unseen
    with snapshot():
        idle_limit.allow(idle_limit.LONG)
        found: list[str] = []
        with shown("Tables", len(OF_TABLES)) as bar:
            for check in OF_TABLES:
                found += in_tables(check)
                bar.update(1)
        with shown("Processes", ProcessInstance.objects.count()) as bar:
            for some in process_sets():
                found += in_processes(some)
                bar.update(len(some))
        return found


def in_tables(check: Callable[[], Iterator[str]]) -> Iterator[str]:
    """The findings of a check, each with its name."""
    return (f"{check.__name__}: {finding}" for finding in check())


def in_processes(some: ProcessSet) -> Iterator[str]:
    """The findings in some processes, each with the name of its check."""
    for check in OF_PROCESSES:
        for finding in check(some):
            yield f"{check.__name__}: {finding}"


class _Unseen:
    def update(self, steps: int) -> None:
        pass


def _unseen(part: str, steps: int) -> Any:
    return nullcontext(_Unseen())
