"""Running a queue's ready work: events, commands and steps, oldest first, claimed in small batches.

A slice of a bulk operation may run between two batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from orchestrator.configuration.conf import conf
from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.engine.events import deadlines, outbox
from orchestrator.engine.events.runner import EventRunner
from orchestrator.engine.operations.bulk.slice_timer import SLICE_SECONDS, slice_timer
from orchestrator.engine.operations.bulk.slices import run_slice
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.sql.connection import (
    has_uncertain_commit,
    note_uncertain_commit,
)
from orchestrator.engine.sql.row_statements import ALL
from orchestrator.engine.sql.session import close_after_rollback, own_thread
from orchestrator.engine.sql.table import Claimed, Table
from orchestrator.engine.sql.tables import bulk_operations, commands, events, step_runs
from orchestrator.engine.steps.quick_results import ROOM
from orchestrator.engine.steps.runner import CLAIMED, StepRunner
from orchestrator.engine.work import leases, releasing, take_over
from orchestrator.engine.work.claims import ClaimedElsewhere, Lines, find_due, postpone
from orchestrator.engine.work.step_claims import StepClaims
from orchestrator.engine.work.worker_slice import (
    BEGIN_SECONDS,
    UNSEEN,
    Claim,
    HeldWork,
    Watch,
    WorkerSlice,
    lateness,
    no_watch,
)
from orchestrator.models import CommandStatus, IssuedCommand, StepRun
from orchestrator.queue import suppress_wakes, wake_queue

FEW = 4
"""The size of the first claims: small, since the duration of the work is not known yet."""

GO_ON_SECONDS = 0.1
"""How long a worker goes on with steps that follow before it looks for other due work."""

TURN_SECONDS = 0.015
"""How long a worker is busy with the frequent visits of a claim before it looks for work of other definitions."""

Visits = Sequence[Claimed[StepRun]]


def drain(
    queue: str = DEFAULT_QUEUE,
    *,
    owner: str = "",
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    watch: Watch = no_watch,
    held: HeldWork | None = None,
    alone: bool = False,
) -> int:
    """Run ready work until none is left or the time slice ends; in the second case wake the queue again.

    Args:
        queue: whose work.
        owner: the worker's boot id; made up when empty.
        seconds: the time slice; None for as long as there is work.
        stop: asked between pieces of work; after it says yes, claims that have not begun are released uncharged.
        watch: wraps each piece of work, with the seconds that it may take.
        held: where this worker shows its unbegun claims and its unstored results; None for nowhere.
        alone: whether this worker is the only one; it then begins all that it claims, however long that takes.

    Returns:
        How many pieces of work were run.
    """
    owner = owner or uuid4().hex
    ends = time.monotonic() + seconds if seconds is not None else float("inf")
    worker_slice = WorkerSlice(
        queue, owner, lambda: stop() or time.monotonic() >= ends, watch, held or UNSEEN
    )
    ready = ReadyWork(worker_slice, stop, alone=alone)
    own_thread()
    with suppress_wakes(queue):
        while not worker_slice.over():
            leases.end_uncertain_leases(owner)
            if not (ready.run_once() or has_uncertain_commit()):
                return ready.done
    wake_queue(queue)
    return ready.done


@dataclass(frozen=True)
class WorkKind:
    """One kind of ready work: its table, the function that runs it, and the size of a batch."""

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
        """The number of pieces of work that were run."""
        self.events = EventRunner(worker_slice)
        self.steps = StepRunner(worker_slice)
        self.step_claims = StepClaims(worker_slice.queue, worker_slice.owner)
        self.claimed_elsewhere = ClaimedElsewhere()
        self._skipped = False
        """Whether other work has run since this worker skipped events: the skipped events may be next by now."""
        self.sizes = {events: FEW, commands: FEW, step_runs: FEW}
        """The size of the next claim of each kind."""
        self.visits = WorkKind(step_runs, self._step, ROOM, CLAIMED)
        self.waiting: Visits = []
        """Claimed visits that begin when the scarce ones of their claim have gone on."""
        self.kinds = (
            WorkKind(events, self.events.run, 64, {}),
            WorkKind(commands, self._carry_out, 8, {"status": CommandStatus.RUNNING}),
            self.visits,
        )

    def run_once(self) -> bool:
        """Claim and run a batch of each kind. Return whether there may be more for this worker."""
        known = self.claimed_elsewhere.count()
        self._skipped = self._skipped and known > 0
        tables = [kind.table for kind in self.kinds]
        *found, many = find_due(self.worker_slice.queue, [*tables, bulk_operations])
        led = [
            self._batch(kind)
            for kind, is_due in zip(self.kinds, found, strict=True)
            if is_due
        ]
        if many and slice_timer.is_due(others=any(led)):
            led.append(self._slice_of_bulk())
        if any(led):
            self._skipped = True  # the skipped events may follow those that were run
            return True
        if self.claimed_elsewhere.count() > known:
            return True  # there may be events of other processes behind them
        if self._skipped:
            self.claimed_elsewhere.clear()
            return True
        return False

    def _slice_of_bulk(self) -> bool:
        """Run a slice of a bulk operation. Return whether there was one."""
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
        with self.worker_slice.watch(limit, leases.work_name(command)):
            outbox.carry_out_command(command, self.worker_slice)

    def _step(self, item: Claimed[StepRun]) -> None:
        run = item.work
        if run.kind:
            self.steps.run(run)
            return
        with self.worker_slice.watched(run):
            deadlines.fire_deadline(run)  # of a process manager, whose steps only wait

    def _batch(self, kind: WorkKind) -> bool:
        """Claim and run a batch. Return whether that led to anything."""
        here, asked, size = self.worker_slice, time.monotonic(), self.sizes[kind.table]
        lateness.measure()
        close_after_rollback()
        claimed = self._claim(kind, size)
        if time.monotonic() - asked > conf().LEASE_SECONDS / 2:
            note_uncertain_commit()  # another worker may have claimed these rows before the answer came
            return False
        # Visits have no order, so none is early: `Lines` would only cost.
        if kind.table is step_runs:
            if len(claimed) == size:
                wake_queue(here.queue, others=True)
            self._visit(claimed, asked)
            return bool(claimed)
        lines = Lines(claimed)
        if lines.mine and len(claimed) == size:
            wake_queue(here.queue, others=True)
        led = self._postpone(lines.early) or bool(lines.mine)
        done = self._run_in_time(kind, lines, asked)
        self._count(kind, done, done, asked)
        return led

    def _count(self, kind: WorkKind, done: int, begun: int, since: float) -> None:
        """Count work that was run, and find the size of the next claim.

        Args:
            kind: the kind of the work.
            done: how many pieces were run.
            begun: how many of them set the size.
            since: a monotonic time before these.
        """
        self.done += done
        if begun:
            taken = time.monotonic() - since
            self.sizes[kind.table] = self._next_size(kind, begun, taken)

    def _visit(self, claimed: Visits, asked: float) -> None:
        """Run claimed visits and those that follow: scarce ones to their next wait before the others begin."""
        scarce = claimed[: self.step_claims.scarce]
        others = claimed[len(scarce) :]
        if scarce:
            self._visit_scarce(scarce, others, asked)
            if self._is_too_late(asked):
                self._leave_out(others)
                return
        self._visit_others(others, asked)

    def _visit_scarce(self, claimed: Visits, others: Visits, asked: float) -> None:
        """Run visits and those that follow while the others of the claim wait, which the supervisor sees."""
        self.waiting = others
        try:
            self.done += self._begin_visits(claimed, asked)
            left = asked + BEGIN_SECONDS / 2 * lateness.factor - time.monotonic()
            self.done += self._go_on(left, turn=float("inf"))
        finally:
            self.waiting = []
            self.worker_slice.held.release()

    def _visit_others(self, claimed: Visits, asked: float) -> None:
        """Run visits and those that follow; not for long while work of scarce definitions is due."""
        beside, since = self.step_claims.beside_others, time.monotonic()
        turn = since + TURN_SECONDS * lateness.factor if beside else float("inf")
        begun = self._begin_visits(claimed, asked)
        done = begun + self._go_on(GO_ON_SECONDS * lateness.factor, turn)
        measured = (begun, since) if beside else (done, asked)
        self._count(self.visits, done, *measured)

    def _leave_out(self, others: Visits) -> None:
        """Release the other visits of a claim, none of which may begin any more; the next claim begins with them."""
        self.step_claims.left_out = True
        if not has_uncertain_commit():
            self._leave_to_others([item.work for item in others])

    def _begin_visits(self, claimed: Visits, asked: float) -> int:
        """End claimed sleeps together, then run the other visits. Return how many were run."""
        ended = self.steps.end_sleeps(claimed)
        lines = Lines([one for one in claimed if one.work.pk not in ended])
        return len(ended) + self._run_in_time(self.visits, lines, asked)

    def _claim(self, kind: WorkKind, size: int) -> Sequence[Claimed[Any]]:
        here, lease, which = self.worker_slice, conf().LEASE_SECONDS, ALL
        if kind.table is step_runs:
            return self.step_claims.claim(size, lease, **kind.claimed)
        if kind.table is commands:
            which = commands.in_order
        elif kind.table is events:
            which = self.claimed_elsewhere.claimable()
        return kind.table.claim(
            here.queue, here.owner, size, lease, which, **kind.claimed
        )

    def _go_on(self, seconds: float, turn: float) -> int:
        """Store the results of steps and run the visits that follow, round by round. Return how many were run.

        Args:
            seconds: how long visits are taken up.
            turn: the monotonic time from which they give way to work of scarce definitions.
        """
        steps, done, ends = self.steps, 0, time.monotonic() + seconds
        while steps.store(goes_on=time.monotonic() < ends):
            if time.monotonic() - steps.since > conf().LEASE_SECONDS / 2:
                note_uncertain_commit()  # another worker may have claimed these rows before the answer came
                break
            asked, following = steps.since, steps.take()
            if time.monotonic() >= turn:
                if self._give_way(following):
                    break
                turn = time.monotonic() + TURN_SECONDS * lateness.factor
            lines = Lines([Claimed(run) for run in following])
            done += self._run_in_time(self.visits, lines, asked)
        steps.forget()
        return done

    def _give_way(self, following: list[StepRun]) -> bool:
        """Release visits if work of scarce definitions is due. Return whether it is.

        They keep their place before all other due work. Those of a loop go behind it, or a loop would hold up the rest.
        """
        if has_uncertain_commit() or not self.step_claims.are_others_due(following):
            return False
        self._leave_to_others([run for run in following if run.visit == 1])
        now = database_now()
        send(releasing.release(run, now) for run in following if run.visit > 1)
        return True

    def _postpone(self, early: list[Claimed[Any]]) -> bool:
        """Release events that are too early. Return whether at least one of them is not blocked by another worker."""
        here, elsewhere = self.worker_slice, self.claimed_elsewhere
        found = postpone(here.queue, here.owner, early, elsewhere)
        elsewhere.note(found)
        return len(found) < len(early)

    def _next_size(self, kind: WorkKind, done: int, taken: float) -> int:
        """The number of pieces that begin in time, if each takes as long as the `done` ones took on average."""
        bound, alone = BEGIN_SECONDS * lateness.factor, self.alone
        if kind is self.visits and self.step_claims.beside_others:
            bound, alone = TURN_SECONDS * lateness.factor, False
        if alone or taken * kind.batch <= bound * done:
            return kind.batch
        return max(FEW, int(bound * done / taken))

    def _run_in_time(self, kind: WorkKind, lines: Lines, asked: float) -> int:
        """Run claimed work in its order, and release the rest in time. Return how many pieces were run."""
        held, mine, begun, shown = self.worker_slice.held, lines.mine, 0, 0
        early = list[Claimed[Any]]()
        held.show_claimed([*_claims(lines), *self._unbegun_steps([])], asked)
        if kind.table is events:
            self.events.begin(lines)
        try:
            for number, item in enumerate(mine):
                if number and not self._may_begin(number - shown, asked):
                    break
                self.events.finish_before(item)
                if lines.may_run(item):
                    kind.run(item)
                else:
                    early.append(item)
                begun += 1
                if self.steps.are_due and self.steps.store():
                    shown = number  # shown anew below, with the visits that follow
                    held.show_claimed(self._unbegun_steps(mine[number:]), asked)
            self.events.finish()
        finally:
            self._hide_claims()
        if not has_uncertain_commit():
            self._postpone(early)
            works = [item.work for item in mine[begun:]]
            if works or self._is_late(asked):
                works += self.steps.take()
            self._leave_to_others(works)
        return begun - len(early)

    def _hide_claims(self) -> None:
        """Show the supervisor no claims, unless some of them begin later."""
        if not self.waiting:
            self.worker_slice.held.release()

    def _unbegun_steps(self, mine: Sequence[Claimed[StepRun]]) -> list[Claim]:
        waiting = (item.work for item in self.waiting)
        runs = [*(item.work for item in mine), *self.steps.following, *waiting]
        return [Claim(leases.work_name(run), "") for run in runs]

    def _is_late(self, asked: float) -> bool:
        bound = BEGIN_SECONDS * lateness.factor
        return not self.alone and time.monotonic() - asked > bound

    def _may_begin(self, number: int, asked: float) -> bool:
        """Show the supervisor that a claimed piece of work begins. Return whether this worker still may begin it."""
        free = number if self.events.holds else 0
        # It is shown before the question: a supervisor that reads it later does not give the work to others.
        self.worker_slice.held.show_begun(number, free)
        return not self._is_too_late(asked)

    def _is_too_late(self, asked: float) -> bool:
        """Whether this worker may begin no more of what it asked for at a monotonic time."""
        return self._is_late(asked) or self.stop() or has_uncertain_commit()

    def _leave_to_others(self, works: list[Any]) -> None:
        if not works:
            return
        here, names = self.worker_slice, [leases.work_name(work) for work in works]
        take_over.yield_work(here.owner, names)
        wake_queue(here.queue, others=True)


def _claims(lines: Lines) -> list[Claim]:
    """Claimed work, as a supervisor sees it."""
    return [
        Claim(leases.work_name(item.work), str(lines.line_of(item)))
        for item in lines.mine
    ]
