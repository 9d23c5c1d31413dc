"""Queues that nobody sees to: work is due on them, and no worker of theirs lives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from orchestrator.engine.storage.batch import database_now
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    IssuedCommand,
    StepRun,
    Worker,
)
from orchestrator.models.work import Work
from orchestrator.queue import plain

WORK: tuple[type[Work], ...] = (
    InboxEvent,
    IssuedCommand,
    StepRun,
    BulkOperation,
)
"""What workers claim."""


def unattended() -> list[str]:
    """The queues on which work is due, and for which no worker lives."""
    now = database_now()
    due = {plain(name) for table in WORK for name in queues_with_due(table, now)}
    alive = Worker.objects.alive(now).filter(queue__in=due)
    return sorted(due.difference(alive.values_list("queue", flat=True)))


def queues_with_due(table: type[Work], now: datetime) -> Iterator[str]:
    """The queues of which a table has due work: for each of those it has work of, two looks at the index."""
    for name in queues_with_work(table):
        due = table._default_manager.filter(queue=name, wake_at__lte=now)
        if due.order_by().exists():
            yield name


def queues_with_work(table: type[Work]) -> Iterator[str]:
    """The queues of which a table has work, now or later: each is one look at the index."""
    waiting = table._default_manager.filter(wake_at__isnull=False).order_by("queue")
    names = waiting.values_list("queue", flat=True)
    name = names.first()
    while name is not None:
        yield name
        name = names.filter(queue__gt=name).first()
