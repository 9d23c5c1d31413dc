"""What must always hold, asked of the stored rows. Each finding says which rule is broken and where.

The numbers are those of docs/reliability.md. A check reads them as of one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from orchestrator.engine.invariants.history import dense_history, joins, model
from orchestrator.engine.invariants.ledger import (
    audit,
    conservation,
    fences,
    outbox,
    references,
)
from orchestrator.engine.invariants.progress import progress
from orchestrator.engine.invariants.workflow_rows import (
    maps,
    results,
    sub_processes,
    undoing,
)
from orchestrator.engine.storage import idle_limit
from orchestrator.snapshot import snapshot

__all__ = ["CHECKS", "violations"]

CHECKS: tuple[Callable[[], Iterator[str]], ...] = (
    conservation,
    dense_history,
    model,
    progress,
    joins,
    maps,
    fences,
    results,
    outbox,
    audit,
    sub_processes,
    undoing,
    references,
)


def violations() -> list[str]:
    """Every broken rule that the stored rows show; none when all is well."""
    with snapshot():
        idle_limit.allow(idle_limit.LONG)
        return [
            f"{check.__name__}: {finding}" for check in CHECKS for finding in check()
        ]
