"""Running a queue's ready work: events, commands and deadlines, oldest first, claimed in small batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from orchestrator.conf import conf
from orchestrator.engine.claims import leases, take_over
from orchestrator.engine.claims.held import BEGIN_SECONDS, UNSEEN, Claim, Held
from orchestrator.engine.claims.lines import Lines, put_off
from orchestrator.engine.claims.worker_slice import Watch, WorkerSlice, nobody
from orchestrator.engine.events import deadlines, delivery, outbox
from orchestrator.engine.steps.running import CLAIMED, StepRunner
from orchestrator.engine.storage.table import Table
from orchestrator.engine.storage.tables import commands, events, step_runs
from orchestrator.models import CommandStatus, InboxEvent, IssuedCommand, StepRun
from orchestrator.queue import answering, ring

FEW = 4
"""How many pieces of work are claimed at first: few, as nobody knows yet how long they take."""


def drain(
    queue: str = "default",
    *,
    owner: str = "",
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    watch: Watch = nobody,
    held: Held = UNSEEN,
    alone: bool = False,
) -> int:
    """Runs ready work until there is none, or the time slice ends and another bell is rung.

    Args:
        queue: whose work.
        owner: the worker's boot id; made up when empty.
        seconds: the time slice; None for as long as there is work.
        stop: asked between pieces of work; what is claimed but not begun is given back uncharged.
        watch: told of each piece of work and the seconds it may take.
        held: where it is shown what is claimed and not begun, and which results are not stored yet.
        alone: nobody else runs this work, so that what is claimed is begun here, however long that takes.

    Returns:
        How many pieces of work were run.
    """
    owner = owner or uuid4().hex
    ends = time.monotonic() + seconds if seconds is not None else float("inf")
    worker_slice = WorkerSlice(
        queue, owner, lambda: stop() or time.monotonic() >= ends, watch, held
    )
    ready = ReadyWork(worker_slice, stop, alone=alone)
    total = 0
    with answering(queue):
        while not worker_slice.over():
            leases.end_doubtful(queue, owner)
            done = ready.run_once()
            if not (done or leases.in_doubt()):
                return total
            total += done
    ring(queue)
    return total


@dataclass(frozen=True)
class WorkKind:
    """One kind of ready work: where it is claimed, in batches of how many, and how it is run."""

    table: Table[Any]
    run: Callable[[Any], bool | None]
    """Says False when it is not settled, so that what comes after it must wait."""
    batch: int
    claimed: dict[str, Any]


class ReadyWork:
    """The ready work of a queue, as one worker claims and runs it."""

    def __init__(
        self,
        worker_slice: WorkerSlice,
        stop: Callable[[], bool],
        *,
        alone: bool = False,
    ) -> None:
        self.worker_slice = worker_slice
        self.stop = stop
        self.alone = alone
        self.steps = StepRunner(worker_slice)
        self.sizes = {events: FEW, commands: FEW, step_runs: FEW}
        """How many pieces of each kind are claimed next."""
        self.kinds = (
            WorkKind(events, self._deliver, 64, {}),
            WorkKind(commands, self._carry_out, 8, {"status": CommandStatus.RUNNING}),
            WorkKind(step_runs, self._step, 16, CLAIMED),
        )

    def run_once(self) -> int:
        """Claims and runs a batch of each kind; how many pieces of work that were."""
        return sum(self._batch(kind) for kind in self.kinds)

    def _deliver(self, event: InboxEvent) -> bool:
        name = leases.name_of(events, event.pk)
        with self.worker_slice.watch(conf().EVENT_TIMEOUT, name):
            return delivery.deliver(event)

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
        here, asked, size = self.worker_slice, time.monotonic(), self.sizes[kind.table]
        claimed = kind.table.claim(
            here.queue, here.owner, size, conf().LEASE_SECONDS, **kind.claimed
        )
        if time.monotonic() - asked > conf().LEASE_SECONDS / 2:
            leases.doubt()  # others may have taken it over before the answer came
            return 0
        if len(claimed) == size:
            ring(here.queue, others=True)
        lines = Lines(claimed)
        put_off(lines.early)
        done = self._run_in_time(kind, lines, asked)
        if done:
            taken = time.monotonic() - asked
            self.sizes[kind.table] = self._next_size(kind, done, taken)
        self.steps.finish()
        return done + len(lines.early)

    def _next_size(self, kind: WorkKind, done: int, taken: float) -> int:
        """How many are begun in time if they go on as those did that have taken so many seconds."""
        if self.alone or taken * kind.batch <= BEGIN_SECONDS * done:
            return kind.batch
        return max(FEW, int(BEGIN_SECONDS * done / taken))

    def _run_in_time(self, kind: WorkKind, lines: Lines, asked: float) -> int:
        """Runs claimed work in its order; what cannot be begun in time is for others. Returns how many were run."""
        held, done = self.worker_slice.held, 0
        held.claimed(_claims(kind.table, lines), asked)
        try:
            for number, item in enumerate(lines.mine):
                if number and not self._may_begin(number, item.work, asked):
                    break
                if not lines.has(item):
                    put_off([item])
                elif kind.run(item.work) is False:
                    lines.stop(item)
                done += 1
        finally:
            held.let_go()
        if lines.mine[done:] and not leases.in_doubt():
            self._let_others(kind.table, [item.work for item in lines.mine[done:]])
        return done

    def _may_begin(self, number: int, work: Any, asked: float) -> bool:
        """Whether claimed work is begun now; nobody else may begin it then."""
        self.steps.make_way(work)
        self.worker_slice.held.begun(number)  # first: who sees it later leaves it alone
        late = not self.alone and time.monotonic() - asked > BEGIN_SECONDS
        return not (late or self.stop() or leases.in_doubt())

    def _let_others(self, table: Table[Any], works: list[Any]) -> None:
        here = self.worker_slice
        names = [leases.name_of(table, work.pk) for work in works]
        take_over.unbegun(here.queue, here.owner, names)
        ring(here.queue, others=True)


def _claims(table: Table[Any], lines: Lines) -> list[Claim]:
    """Claimed work, as it is shown to a supervisor."""
    return [
        Claim(leases.name_of(table, item.work.pk), str(lines.line_of(item)))
        for item in lines.mine
    ]
