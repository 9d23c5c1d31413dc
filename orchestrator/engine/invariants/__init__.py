"""What must always hold, asked of the stored rows. Each finding says which rule is broken and where.

The numbers are those of docs/reliability.md. A check reads one consistent snapshot where the database gives one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.db import connection, transaction

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
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if connection.vendor == "postgresql" and outermost:
            connection.cursor().execute(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
            )
        return [
            f"{check.__name__}: {finding}" for check in CHECKS for finding in check()
        ]
