"""The supervisor of one host's workers for one queue.

It forks workers, kills one that overruns its time or is stopped, replaces dead ones, and on SIGTERM stops them without
charging an attempt. Processes that a worker's steps have started end with the worker. It runs no work itself and needs
no leader. Its loop never waits: another process stores its reports.
"""

from __future__ import annotations

import logging
import random
import signal
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from django.db import Error as DatabaseError
from django.db import connections

from orchestrator import process_group
from orchestrator.configuration.conf import conf
from orchestrator.engine.sql.connection import passes
from orchestrator.engine.storage import definitions
from orchestrator.models import Definition, Lost
from orchestrator.queue import calls_queue
from orchestrator.retention import retention
from orchestrator.workers import caller, notifier, pruner
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.database_process import (
    DatabaseProcess,
    LivingWorker,
    LostWorker,
    WorkerReport,
)
from orchestrator.workers.shared_memory.calls import SharedCalls
from orchestrator.workers.shared_memory.claims import SharedClaims
from orchestrator.workers.take_over import TakeOverProcess
from orchestrator.workers.worker import run_worker

log = logging.getLogger(__name__)

TICK_SECONDS = 0.1
LATE_SECONDS = 0.5
"""A longer pause between two looks at the workers means that the supervisor itself was late."""
GRACE_SECONDS = 2.0
LAST_SECONDS = 2.0
"""How long the last report may take when the supervisor stops."""
PAUSE_SECONDS = 0.5
"""Between two tries to reach the database."""
RESPAWN_SECONDS = 0.5
"""A child that lived shorter than this is replaced after a pause of the same length."""


@dataclass
class WorkerProcess:
    """A worker process and what its supervisor knows of it."""

    pid: int
    worker: CurrentWorker
    held: SharedClaims = field(default_factory=SharedClaims)
    calls: SharedCalls | None = None
    """Its calls in flight; None for a worker of one piece of work at a time."""
    born: float = field(default_factory=time.monotonic)
    killed: Lost | None = None
    halted: float = 0.0
    """Seconds for which it was seen stopped."""
    guilty: dict[str, Lost] = field(default_factory=dict)
    """The work for which it was killed."""
    _until: float = 0.0
    _late: float = 0.0
    _running_since: float = 0.0
    _blocked: float = 0.0
    """Seconds for which its event loop was seen at the same call."""

    def look(self, passed: float) -> None:
        """Note its state, and kill it if it overruns its time, or is stopped for a lease.

        Args:
            passed: seconds since the last look; those for which the supervisor was late do not count.
        """
        late, until = max(0.0, passed - LATE_SECONDS), self.worker.slot.until
        self._late = late + (self._late if until == self._until else 0.0)
        self._until = until
        self.halted = (
            self.halted + passed - late if process_group.is_stopped(self.pid) else 0.0
        )
        if self.killed is not None:
            return
        if 0 < until < time.monotonic() - self._late:
            self._kill([self.worker.slot.work], "overran its time")
        elif (work := self._blocking_call(passed - late)) is not None:
            self._kill([work], f"is blocked by {work}")
        elif overdue := self._overdue():
            self._kill(overdue, f"goes on with {', '.join(overdue[:5])}")
        elif self.halted > conf().LEASE_SECONDS:
            self._kill([], "stands still")

    def _blocking_call(self, passed: float) -> str | None:
        """Return the call that has blocked its event loop for too long."""
        since, work = self.calls.running_call if self.calls is not None else (0.0, "")
        same = since and since == self._running_since and not self.halted
        self._blocked = self._blocked + passed if same else 0.0
        self._running_since = since
        return work if self._blocked > conf().BLOCKED_SECONDS else None

    def _overdue(self) -> list[str]:
        """Return the calls that should have been over long ago."""
        now = time.monotonic() - self._late
        return [call.work for call in self.calls or () if call.until < now]

    def _kill(self, guilty: list[str], why: str) -> None:
        log.error("worker %s %s and is killed", self.pid, why)
        self.killed = Lost.TIMED_OUT if guilty else Lost.DIED
        self.guilty = dict.fromkeys(guilty, Lost.TIMED_OUT)
        process_group.kill_child(self.pid)

    @property
    def as_live(self) -> LivingWorker:
        """This worker in a report, as a live one."""
        busy = self.worker.slot.until > 0 or any(self.calls or ())
        holds = busy and not self.halted and not self.killed
        age = time.monotonic() - self.born
        calls = self.calls is not None
        return LivingWorker(self.worker.owner, self.pid, age, holds, calls)

    def as_lost(self, how: Lost) -> LostWorker:
        """Return this worker for a report, as a lost one.

        If one call is to blame, the idempotent calls beside it are not charged.

        Args:
            how: how it was lost, unless it was killed for its work.
        """
        work, calls = self.worker.slot.work, list(self.calls or ())
        guilty = self.guilty
        if self.calls is not None and (blamed := self.calls.blamed):
            guilty = guilty | {blamed: Lost.DIED}
            work = ""  # it was only being stored, or is the one
        in_hand = {work: self.killed or how} if work else {}
        in_hand |= {
            call.work: how for call in calls if not (guilty and call.idempotent)
        }
        in_hand |= guilty
        known, returned = tuple(in_hand.items()), self.held.results.read().text
        return LostWorker(self.worker.owner, known, returned)


class Supervisor:
    """Keeps a number of workers of one queue alive."""

    def __init__(self, queue: str, processes: int) -> None:
        self.id = uuid4().hex
        self.queue = queue
        self.processes = processes
        self.children: dict[int, WorkerProcess] = {}
        self.lost: dict[LostWorker, float] = {}
        self.database = DatabaseProcess()
        self.taking_over = TakeOverProcess(queue)
        self.pruner = process_group.OptionalHelper(
            pruner.NAME, pruner.run_pruner, retention
        )
        self.notifier = process_group.OptionalHelper(
            notifier.NAME, notifier.run_notifier, notifier.has_recipients
        )
        self.stopping = False
        self._looked_at = time.monotonic()
        self._heartbeat_at = self._sweep_at = self._spawn_at = self._report_at = 0.0

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until its terminal is closed."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # else nohup ignores it
            signal.signal(signal.SIGHUP, self._stop)
        connections.close_all()  # from here on only its children have any
        while not self.stopping:
            self._reap()
            self._spawn()
            self._spawn_caller()
            self._start_take_over()
            self.pruner.start()
            self.notifier.start()
            self._look()
            self._report()
            time.sleep(TICK_SECONDS)
        self._end()

    def _stop(self, signum: int, frame: Any) -> None:
        self.stopping = True

    def _reap(self) -> None:
        now = time.monotonic()
        gone = [
            child
            for child in self.children.values()
            if process_group.has_ended(child.pid)
        ]
        for child in gone:
            del self.children[child.pid]
            self.lost[child.as_lost(Lost.DIED)] = now
            log.warning("worker %s is gone, replacing it", child.pid)
            if now - child.born < RESPAWN_SECONDS:
                self._spawn_at = now + RESPAWN_SECONDS

    def _spawn(self) -> None:
        now = time.monotonic()
        while len(self._workers) < self.processes and now >= self._spawn_at:
            held = SharedClaims(self.taking_over.wake)
            worker = CurrentWorker(held=held)
            pid = process_group.fork_child(partial(run_worker, self.queue, worker))
            self.children[pid] = WorkerProcess(pid, worker, held)
            self.taking_over.end()  # it does not know of this one
            self._heartbeat_at = 0.0

    def _spawn_caller(self) -> None:
        """Start a worker for calls, once this queue has had any."""
        if not self.database.calls or time.monotonic() < self._spawn_at:
            return
        if any(child.calls is not None for child in self.children.values()):
            return
        queue, worker = calls_queue(self.queue), CurrentWorker()
        calls = SharedCalls(conf().CALLS_IN_FLIGHT)
        pid = process_group.fork_child(lambda: caller.run_caller(queue, worker, calls))
        self.children[pid] = WorkerProcess(pid, worker, calls=calls)
        self._heartbeat_at = 0.0

    def _start_take_over(self) -> None:
        if self.children and self.taking_over.is_gone:
            held = {child.worker.owner: child.held for child in self._workers}
            self.taking_over.start(held)

    @property
    def _workers(self) -> list[WorkerProcess]:
        """The workers of one piece of work at a time."""
        return [child for child in self.children.values() if child.calls is None]

    def _look(self) -> None:
        now = time.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        for child in self.children.values():
            child.look(passed)

    def _report(self) -> None:
        """Send a report if one is due and the last one has been stored."""
        if self.database.busy and not self._take_answer():
            return
        now = time.monotonic()
        beats, sweeps = now >= self._heartbeat_at, now >= self._sweep_at
        if now < self._report_at or not (beats or sweeps or self.lost):
            return
        if beats:
            self._heartbeat_at = now + conf().HEARTBEAT_SECONDS
        if sweeps:
            self._sweep_at = now + conf().SWEEP_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311  # jitter
        living = [child.as_live for child in self.children.values()] if beats else None
        lost = list(self.lost)
        self.database.send(WorkerReport(self.id, self.queue, living, lost, sweeps))

    def _take_answer(self) -> bool:
        """Return whether the outcome of the last report is known. Lost workers are reported again, for a lease, until
        stored.
        """
        answer = self.database.answer()
        if answer is None:
            return False
        report, stored = answer
        now = time.monotonic()
        if not stored:
            self._heartbeat_at, self._report_at = 0.0, now + PAUSE_SECONDS
        self.lost = {
            lost: since
            for lost, since in self.lost.items()
            if now - since < conf().LEASE_SECONDS  # which has run out by itself then
            and not (stored and lost in report.lost)
        }
        return True

    def _end(self) -> None:
        """Ask the children to stop, kill those that do not in time, and release their work."""
        for child in self.children.values():
            process_group.terminate_child(child.pid)
        until = time.monotonic() + GRACE_SECONDS
        left = set(self.children)
        while left and time.monotonic() < until:
            left = {pid for pid in left if not process_group.has_ended(pid)}
            time.sleep(0.02)
        for pid in left:
            process_group.end_child(pid)
        self.taking_over.end()
        self.pruner.end()
        self.notifier.end()
        # Their work did not kill them, but may have had its effect.
        ended = [child.as_lost(Lost.CUT_OFF) for child in self.children.values()]
        until = time.monotonic() + LAST_SECONDS
        self.database.wait(until)
        last = WorkerReport(self.id, self.queue, [], [*self.lost, *ended])
        # Its connection may have been cut since the report before.
        while not self.database.busy and time.monotonic() < until:
            self.database.send(last)
            if self.database.wait(until):
                break
            time.sleep(PAUSE_SECONDS)
        self.database.end()


def wait_for_database() -> None:
    """Store the definitions of the running code, as soon as the database can be written.

    Raises:
        DatabaseError: its tables are missing.
    """
    while True:
        try:
            Definition.objects.exists()  # also where no definition is to be stored
            definitions.store_definitions()
            return
        except DatabaseError as error:
            if not passes(error):
                raise
            log.warning("the database cannot be written yet, trying again: %s", error)
            connections.close_all()
            time.sleep(PAUSE_SECONDS)


def supervise(queue: str, processes: int) -> None:
    """Run a queue's workers on this host until SIGTERM or SIGINT."""
    Supervisor(queue, processes).run()
