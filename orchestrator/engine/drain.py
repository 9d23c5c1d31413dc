"""Running a queue's ready work: events, commands and deadlines, oldest first, claimed in small batches.

Bulk operations take a slice in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from orchestrator.conf import conf
from orchestrator.definition.process_definition import DEFAULT_QUEUE
from orchestrator.engine.bulk.running import run_slice
from orchestrator.engine.bulk.turn import SLICE_SECONDS, slice_timer
from orchestrator.engine.claims import leases, take_over
from orchestrator.engine.claims.due import due
from orchestrator.engine.claims.held import BEGIN_SECONDS, UNSEEN, Claim, Held
from orchestrator.engine.claims.lines import ClaimedElsewhere, Lines, postpone
from orchestrator.engine.claims.worker_slice import Watch, WorkerSlice, no_watch
from orchestrator.engine.events import deadlines, outbox
from orchestrator.engine.events.running import EventRunner
from orchestrator.engine.steps.group import ROOM
from orchestrator.engine.steps.running import CLAIMED, StepRunner
from orchestrator.engine.storage import uncertain
from orchestrator.engine.storage.row_statements import ALL
from orchestrator.engine.storage.table import Claimed, Table
from orchestrator.engine.storage.tables import (
    bulk_operations,
    commands,
    events,
    step_runs,
)
from orchestrator.models import CommandStatus, IssuedCommand, StepRun
from orchestrator.queue import suppress_wakes, wake_queue

FEW = 4
"""How many pieces of work are claimed at first: few, since their duration is not known yet."""

GO_ON_SECONDS = 0.1
"""How long a worker goes on with steps that follow before it looks for other due work."""


def drain(
    queue: str = DEFAULT_QUEUE,
    *,
    owner: str = "",
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    watch: Watch = no_watch,
    held: Held | None = None,
    alone: bool = False,
) -> int:
    """Runs ready work until there is none, or the time slice ends and another bell is rung.

    Args:
        queue: whose work.
        owner: the worker's boot id; made up when empty.
        seconds: the time slice; None for as long as there is work.
        stop: asked between pieces of work; what is claimed but not begun is given back uncharged.
        watch: told of each piece of work and the seconds it may take.
        held: where it is shown what is claimed and not begun, and which results are not stored yet; None for nowhere.
        alone: this worker is the only one, and begins all that it claims, however long that takes.

    Returns:
        How many pieces of work were run.
    """
    owner = owner or uuid4().hex
    ends = time.monotonic() + seconds if seconds is not None else float("inf")
    worker_slice = WorkerSlice(
        queue, owner, lambda: stop() or time.monotonic() >= ends, watch, held or UNSEEN
    )
    ready = ReadyWork(worker_slice, stop, alone=alone)
    with suppress_wakes(queue):
        while not worker_slice.over():
            leases.end_uncertain(owner)
            if not (ready.run_once() or uncertain.noted()):
                return ready.done
    wake_queue(queue)
    return ready.done


@dataclass(frozen=True)
class WorkKind:
    """One kind of ready work: where it is claimed, in batches of how many, and how it is run."""

    table: Table[Any]
    run: Callable[[Any], object]
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
        self.done = 0
        """How many pieces of work were run."""
        self.events = EventRunner(worker_slice)
        self.steps = StepRunner(worker_slice)
        self.elsewhere = ClaimedElsewhere()
        self._skipped = False
        """Whether events were skipped since some were run: look again after the next one is settled."""
        self.sizes = {events: FEW, commands: FEW, step_runs: FEW}
        """How many pieces of each kind are claimed next."""
        self.visits = WorkKind(step_runs, self._step, ROOM, CLAIMED)
        self.kinds = (
            WorkKind(events, self.events.run, 64, {}),
            WorkKind(commands, self._carry_out, 8, {"status": CommandStatus.RUNNING}),
            self.visits,
        )

    def run_once(self) -> bool:
        """Claims and runs a batch of each kind; whether there may be more for this worker."""
        known = self.elsewhere.count()
        self._skipped = self._skipped and known > 0
        tables = [kind.table for kind in self.kinds]
        *found, many = due(self.worker_slice.queue, [*tables, bulk_operations])
        led = [
            self._batch(kind)
            for kind, is_due in zip(self.kinds, found, strict=True)
            if is_due
        ]
        if many and slice_timer.is_due(others=any(led)):
            led.append(self._slice_of_bulk())
        if any(led):
            self._skipped = True  # it may be what comes after those that were run
            return True
        if self.elsewhere.count() > known:
            return True  # there may be others behind them
        if self._skipped:
            self.elsewhere.clear()
            return True
        return False

    def _slice_of_bulk(self) -> bool:
        """Runs a slice of a bulk operation; whether there was one."""
        here = self.worker_slice
        claimed = bulk_operations.claim(here.queue, here.owner, 1, conf().LEASE_SECONDS)
        for item in claimed:
            with slice_timer.measure() as measured, here.watched(item.work):
                measured.begun = run_slice(item.work, SLICE_SECONDS, self.stop)
        return bool(claimed)

    def _carry_out(self, item: Claimed[IssuedCommand]) -> None:
        command = item.work
        handler = outbox.handler_of(command)
        limit = handler.timeout if handler else conf().EVENT_TIMEOUT
        with self.worker_slice.watch(limit, leases.name_of(command)):
            outbox.carry_out(command)

    def _step(self, item: Claimed[StepRun]) -> None:
        run = item.work
        if run.kind:
            self.steps.run(run)
            return
        with self.worker_slice.watched(run):
            deadlines.fire(run)  # of a process manager, whose steps only wait

    def _batch(self, kind: WorkKind) -> bool:
        """Claims and runs a batch; whether that led to anything."""
        here, asked, size = self.worker_slice, time.monotonic(), self.sizes[kind.table]
        which = self.elsewhere.others() if kind.table is events else ALL
        claimed = kind.table.claim(
            here.queue, here.owner, size, conf().LEASE_SECONDS, which, **kind.claimed
        )
        if time.monotonic() - asked > conf().LEASE_SECONDS / 2:
            uncertain.note()  # others may have taken it over before the answer came
            return False
        lines = Lines(claimed)
        if lines.mine and len(claimed) == size:
            wake_queue(here.queue, others=True)
        moved = self._postpone(lines.early)
        done = self._run_in_time(kind, lines, asked)
        if kind.table is step_runs:
            done += self._go_on()
        if done:
            taken = time.monotonic() - asked
            self.sizes[kind.table] = self._next_size(kind, done, taken)
        self.done += done
        return bool(lines.mine) or moved

    def _go_on(self) -> int:
        """Stores what steps have given and runs what follows, round by round. Returns how many were run."""
        steps, done, ends = self.steps, 0, time.monotonic() + GO_ON_SECONDS
        while steps.store(goes_on=time.monotonic() < ends):
            if time.monotonic() - steps.since > conf().LEASE_SECONDS / 2:
                uncertain.note()  # others may have taken it over before the answer came
                break
            asked, following = steps.since, steps.take()
            lines = Lines([Claimed(run) for run in following])
            done += self._run_in_time(self.visits, lines, asked)
        steps.forget()
        return done

    def _postpone(self, early: list[Claimed[Any]]) -> bool:
        """Gives back events that are too early; whether any of them waits for no other worker."""
        found = postpone(self.worker_slice.queue, self.worker_slice.owner, early)
        self.elsewhere.note(found)
        return len(found) < len(early)

    def _next_size(self, kind: WorkKind, done: int, taken: float) -> int:
        """How many are begun in time if they go on as those did that have taken so many seconds."""
        if self.alone or taken * kind.batch <= BEGIN_SECONDS * done:
            return kind.batch
        return max(FEW, int(BEGIN_SECONDS * done / taken))

    def _run_in_time(self, kind: WorkKind, lines: Lines, asked: float) -> int:
        """Runs claimed work in its order; what cannot be begun in time is for others. Returns how many were run."""
        held, mine, begun, shown = self.worker_slice.held, lines.mine, 0, 0
        early = list[Claimed[Any]]()
        held.claimed(_claims(lines), asked)
        if kind.table is events:
            self.events.begin(lines)
        try:
            for number, item in enumerate(mine):
                if number and not self._may_begin(number - shown, asked):
                    break
                self.events.finish_before(item)
                if lines.has(item):
                    kind.run(item)
                else:
                    early.append(item)
                begun += 1
                if self.steps.are_due and self.steps.store():
                    shown = number  # with what follows, which is begun after the others
                    held.claimed(self._unbegun_steps(mine[number:]), asked)
            self.events.finish()
        finally:
            held.release()
        if not uncertain.noted():
            self._postpone(early)
            works = [item.work for item in mine[begun:]]
            if works or self._is_late(asked):
                works += self.steps.take()
            self._leave_to_others(works)
        return begun - len(early)

    def _unbegun_steps(self, mine: Sequence[Claimed[StepRun]]) -> list[Claim]:
        runs = [*(item.work for item in mine), *self.steps.following]
        return [Claim(leases.name_of(run), "") for run in runs]

    def _is_late(self, asked: float) -> bool:
        return not self.alone and time.monotonic() - asked > BEGIN_SECONDS

    def _may_begin(self, number: int, asked: float) -> bool:
        """Whether this worker begins a claimed piece of work now; no other worker may begin it then."""
        free = number if self.events.holds else 0
        # First: a supervisor that reads it later leaves the work alone.
        self.worker_slice.held.begun(number, free)
        return not (self._is_late(asked) or self.stop() or uncertain.noted())

    def _leave_to_others(self, works: list[Any]) -> None:
        if not works:
            return
        here, names = self.worker_slice, [leases.name_of(work) for work in works]
        take_over.unbegun(here.queue, here.owner, names)
        wake_queue(here.queue, others=True)


def _claims(lines: Lines) -> list[Claim]:
    """Claimed work, as it is shown to a supervisor."""
    return [
        Claim(leases.name_of(item.work), str(lines.line_of(item)))
        for item in lines.mine
    ]
