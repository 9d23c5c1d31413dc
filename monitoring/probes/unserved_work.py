"""Due work on queues that no worker serves: of one process, of one visit, and of each definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db.models import F
from django.db.models.functions import Coalesce

from monitoring.probes.machinery import Machinery, start_command
from monitoring.queries.counts import Capped
from orchestrator.models import (
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    StepStatus,
)
from orchestrator.setup_status import base_queue, calls_queue

MOST = 1_000
"""The maximum number of pieces of work of one kind that are read, the longest due first."""

ONE = Capped(1, MOST)

WORK: tuple[tuple[type[Any], str], ...] = (
    (StepRun, "instance"),
    (IssuedCommand, "instance"),
    (InboxEvent, "process"),
)
"""The work of processes, and the attribute of its process."""


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
    due = [
        UnservedWork(base_queue(queue), at)
        for model, of_process in WORK
        for queue, at in _due_of(process, model, of_process, found)
        if base_queue(queue) in found.unserved
    ]
    return min(due, key=attrgetter("since"), default=None)


def _due_of(
    process: ProcessInstance, model: type[Any], of_process: str, found: Machinery
) -> list[tuple[str, datetime]]:
    """The queues and times of due work of a process, along the index of its rows."""
    rows = model._default_manager.filter(
        **{of_process: process.pk}, wake_at__lte=found.now
    )
    return list(rows.order_by().values_list("queue", "wake_at")[:MOST])


def unserved_visit(run: StepRun, found: Machinery) -> UnservedWork | None:
    """Return the work of a visit if it is due and no worker will do it."""
    queue = base_queue(run.queue)
    if queue not in found.unserved or run.wake_at is None or run.wake_at > found.now:
        return None
    return UnservedWork(queue, run.wake_at)


def unserved_steps(process: ProcessInstance, found: Machinery) -> set[str]:
    """Return the steps of a process with a ready visit that no worker will do."""
    if not found.unserved:
        return set()
    ready = process.step_runs.filter(status=StepStatus.READY, finished_at=None)
    rows = ready.order_by().values_list("node", "queue").distinct()[:MOST]
    return {node for node, queue in rows if base_queue(queue) in found.unserved}


def unserved_by_definition(found: Machinery) -> list[UnservedWork]:
    """Return the due work that no worker will do, by definition and queue, the longest due first."""
    numbers, since = Counter[tuple[str, str]](), dict[tuple[str, str], datetime]()
    more = False
    for rows in _due(found):
        more |= len(rows) == MOST
        for name, queue, at in rows:
            of = name, base_queue(queue)
            numbers[of] += 1
            since[of] = min(at, since.get(of, at))
    works = [
        UnservedWork(queue, at, name, Capped.of(numbers[name, queue], more=more))
        for (name, queue), at in since.items()
        if name
    ]
    return sorted(works, key=attrgetter("since"))


def _due(found: Machinery) -> Iterator[list[tuple[str, str, datetime]]]:
    """Yield the definitions, queues and times of the work that is due longest, of each kind and queue.

    One statement for each queue reads the index in its order; one for all of them would sort what is due.
    """
    for name in (one for base in found.unserved for one in (base, calls_queue(base))):
        for model, of_process in WORK:
            named: Any = F(f"{of_process}__name")
            if model is InboxEvent:  # it may have no process yet
                named = Coalesce(named, "target")
            rows = model._default_manager.filter(queue=name, wake_at__lte=found.now)
            columns = rows.annotate(of=named).order_by("wake_at", "pk")
            yield list(columns.values_list("of", "queue", "wake_at")[:MOST])
