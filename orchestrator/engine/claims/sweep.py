"""Looking for due work that no bell announced: after a lost bell, a dead worker, a deadline. It never runs work."""

from __future__ import annotations

from django.db.models import QuerySet

from orchestrator.definition.process_definition import DEFAULT_QUEUE
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import InboxEvent, IssuedCommand, StepRun
from orchestrator.queue import ring


def sweep(queue: str = DEFAULT_QUEUE) -> bool:
    """Rings the doorbell when a queue has due work, and says whether it has."""
    due = is_due(queue)
    if due:
        ring(queue)
    return due


def is_due(queue: str) -> bool:
    """Whether any event, command or deadline of a queue is due."""
    now = database_now()
    ready: tuple[QuerySet[InboxEvent], QuerySet[IssuedCommand], QuerySet[StepRun]] = (
        InboxEvent.objects.all(),
        IssuedCommand.objects.all(),
        StepRun.objects.all(),
    )
    return any(rows.filter(queue=queue, wake_at__lte=now).exists() for rows in ready)
