"""Looking for due work that no bell announced: after a lost bell, a dead worker, a deadline. It never runs work."""

from __future__ import annotations

from orchestrator.definition.process_definition import DEFAULT_QUEUE
from orchestrator.engine.claims.unattended import WORK
from orchestrator.engine.storage.batch import database_now
from orchestrator.queue import ring


def sweep(queue: str = DEFAULT_QUEUE) -> bool:
    """Rings the doorbell when a queue has due work, and says whether it has."""
    due = is_due(queue)
    if due:
        ring(queue)
    return due


def is_due(queue: str) -> bool:
    """Whether any event, command, deadline or bulk operation of a queue is due."""
    now = database_now()
    return any(
        table._default_manager.filter(queue=queue, wake_at__lte=now).exists()
        for table in WORK
    )
