"""Due work on queues that no worker serves: of one process, of one visit, and of each definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet

from monitoring.probes.machinery import Machinery, start_command
from monitoring.queries.counts import Capped
from orchestrator.models import InboxEvent, IssuedCommand, ProcessInstance, StepRun
from orchestrator.setup_status import base_queue, calls_queue

MOST = 1_000
"""The maximum number of pieces of work of one kind that are read, the longest due first."""

ONE = Capped(1, MOST)

WORK: tuple[tuple[type[Any], str], ...] = (
    (StepRun, "instance"),
    (IssuedCommand, "instance"),
    (InboxEvent, "process"),
)
"""The work of processes, with the attribute of its process."""


@dataclass(frozen=True)
class UnservedWork:
    """Due work on one queue that no worker will do.

    Args:
        queue: the name of the queue.
        since: when the oldest became due.
        definition: the definition of its processes; "" if it is not asked for.
        number: how much there is, up to MOST of each kind.
    """

    queue: str
    since: datetime
    definition: str = ""
    number: Capped = ONE

    @property
    def command(self) -> str:
        """The command that starts workers for it."""
        return start_command(self.queue)


def unserved_work_of(process: ProcessInstance, found: Machinery) -> UnservedWork | None:
    """Return the oldest due work of a process that no worker will do; None without any.

    It sends statements only if there is a queue with due work and without workers.
    """
    if not found.unserved or process.finished_at is not None:
        return None
    oldest = [
        UnservedWork(base_queue(queue), at)
        for model, of_process in WORK
        for queue, at in _due(model, found)
        .filter(**{of_process: process.pk})
        .values_list("queue", "wake_at")[:1]
    ]
    return min(oldest, key=attrgetter("since"), default=None)


def unserved_visit(run: StepRun, found: Machinery) -> UnservedWork | None:
    """Return the work of a visit if it is due and no worker will do it."""
    queue = base_queue(run.queue)
    if queue not in found.unserved or run.wake_at is None or run.wake_at > found.now:
        return None
    return UnservedWork(queue, run.wake_at)


def unserved_by_definition(found: Machinery) -> list[UnservedWork]:
    """Return the due work that no worker will do, by definition and queue, the longest due first."""
    numbers, since = Counter[tuple[str, str]](), dict[tuple[str, str], datetime]()
    for name, queue, at in _each_due(found):
        of = name, base_queue(queue)
        numbers[of] += 1
        since[of] = min(at, since.get(of, at))
    works = [
        UnservedWork(queue, at, name, Capped(numbers[name, queue], MOST))
        for (name, queue), at in since.items()
    ]
    return sorted(works, key=attrgetter("since"))


def _each_due(found: Machinery) -> Iterator[tuple[str, str, datetime]]:
    if not found.unserved:
        return
    for model, of_process in WORK:
        rows = _due(model, found).exclude(**{of_process: None})
        yield from rows.values_list(f"{of_process}__name", "queue", "wake_at")[:MOST]


def _due(model: type[Any], found: Machinery) -> QuerySet[Any]:
    """Return the due work on the queues without workers, the longest due first, along the index of the queues."""
    names = [name for one in found.unserved for name in (one, calls_queue(one))]
    rows: QuerySet[Any] = model._default_manager.filter(
        queue__in=names, wake_at__lte=found.now
    )
    return rows.order_by("wake_at")
