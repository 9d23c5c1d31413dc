"""Running a queue's ready work: events, commands and deadlines, oldest first, claimed in small batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from orchestrator.conf import conf
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.give_back import given_back
from orchestrator.engine.claims.worker_slice import Watch, WorkerSlice, nobody
from orchestrator.engine.events import deadlines, delivery, outbox
from orchestrator.engine.steps.running import CLAIMED, StepRunner
from orchestrator.engine.storage.batch import database_now, send
from orchestrator.engine.storage.table import TURN, Claimed, Table
from orchestrator.engine.storage.tables import commands, events, step_runs
from orchestrator.models import CommandStatus, InboxEvent, IssuedCommand, StepRun
from orchestrator.queue import answering, ring

HOLD_SECONDS = 1.0
"""After this long the rest of a claimed batch is given back, so that others can take it."""


def drain(
    queue: str = "default",
    *,
    owner: str = "",
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    watch: Watch = nobody,
) -> int:
    """Runs ready work until there is none, or the time slice ends and another bell is rung.

    Args:
        queue: whose work.
        owner: the worker's boot id; made up when empty.
        seconds: the time slice; None for as long as there is work.
        stop: asked between pieces of work; what is claimed but not begun is given back uncharged.
        watch: told of each piece of work and the seconds it may take.

    Returns:
        How many pieces of work were run.
    """
    owner = owner or uuid4().hex
    ends = time.monotonic() + seconds if seconds is not None else float("inf")
    worker_slice = WorkerSlice(
        queue, owner, lambda: stop() or time.monotonic() >= ends, watch
    )
    ready = ReadyWork(worker_slice, stop)
    total = 0
    with answering(queue):
        while not worker_slice.over():
            done = ready.run_once()
            if not done:
                return total
            total += done
    ring(queue)
    return total


@dataclass(frozen=True)
class WorkKind:
    """One kind of ready work: where it is claimed, in batches of how many, and how it is run."""

    table: Table[Any]
    run: Callable[[Any], None]
    batch: int
    claimed: dict[str, Any]


class ReadyWork:
    """The ready work of a queue, as one worker claims and runs it."""

    def __init__(self, worker_slice: WorkerSlice, stop: Callable[[], bool]) -> None:
        self.worker_slice = worker_slice
        self.stop = stop
        self.steps = StepRunner(worker_slice)
        self.kinds = (
            WorkKind(events, self._deliver, 64, {}),
            WorkKind(commands, self._carry_out, 8, {"status": CommandStatus.RUNNING}),
            WorkKind(step_runs, self._step, 16, CLAIMED),
        )

    def run_once(self) -> int:
        """Claims and runs a batch of each kind; how many pieces of work that were."""
        return sum(self._batch(kind) for kind in self.kinds)

    def _deliver(self, event: InboxEvent) -> None:
        name = leases.name_of(events, event.pk)
        with self.worker_slice.watch(conf().EVENT_TIMEOUT, name):
            delivery.deliver(event)

    def _carry_out(self, command: IssuedCommand) -> None:
        handler = outbox.handler_of(command)
        limit = handler.timeout if handler else conf().EVENT_TIMEOUT
        name = leases.name_of(commands, command.pk)
        with self.worker_slice.watch(limit, name):
            outbox.carry_out(command)

    def _step(self, run: StepRun) -> None:
        if run.kind:
            self.steps.run(run)
            return
        name = leases.name_of(step_runs, run.pk)
        with self.worker_slice.watch(conf().EVENT_TIMEOUT, name):
            deadlines.fire(run)  # of a process manager, whose steps only wait

    def _batch(self, kind: WorkKind) -> int:
        here, lease = self.worker_slice, conf().LEASE_SECONDS
        claimed = kind.table.claim(
            here.queue, here.owner, kind.batch, lease, **kind.claimed
        )
        if len(claimed) == kind.batch:
            ring(here.queue, others=True)
        works, early = _in_turn(kind.table, claimed)
        _give_back(early, TURN)
        begun = time.monotonic()
        for number, work in enumerate(works):
            late = time.monotonic() - begun > HOLD_SECONDS
            if number and (late or self.stop()):
                _give_back(works[number:], timedelta(0))
                self.steps.finish()
                return number
            kind.run(work)
        self.steps.finish()
        return len(claimed)


def _in_turn(
    table: Table[Any], claimed: list[Claimed[Any]]
) -> tuple[list[Any], list[Any]]:
    """Parts the claimed rows into those whose turn it is and those that would overtake one that others hold."""
    works: list[Any] = []
    early: list[Any] = []
    ahead: Counter[Any] = Counter()
    for item in claimed:
        same = getattr(item.work, table.order) if table.order else None
        if item.older > ahead[same]:
            early.append(item.work)
        else:
            works.append(item.work)
        ahead[same] += 1
    return works, early


def _give_back(works: list[Any], pause: timedelta) -> None:
    """Makes claimed rows due again after a pause."""
    if works:
        due = database_now() + pause
        send(given_back(work, due) for work in works)
