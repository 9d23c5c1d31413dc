"""The supervisor of one host's workers for one queue.

It forks them, kills one that overruns its time or stands still, replaces those that died, and on SIGTERM stops them
without charging an attempt. What a worker's steps have started ends with the worker. It runs no work itself and needs
no leader. Its loop never waits: what it has to tell the database, a process of its own stores.
"""

from __future__ import annotations

import logging
import random
import signal
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.db import Error as DatabaseError
from django.db import connections

from orchestrator.conf import conf
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.models import Definition, Lost
from orchestrator.queue import calls_of
from orchestrator.retention import retention
from orchestrator.workers import caller, group, notifier, pruner
from orchestrator.workers.current import Current
from orchestrator.workers.database_process import DatabaseProcess
from orchestrator.workers.held import SharedClaims
from orchestrator.workers.report import LivingWorker, LostWorker, WorkerReport
from orchestrator.workers.shared_calls import SharedCalls
from orchestrator.workers.taking_over import TakingOverProcess
from orchestrator.workers.worker import run

log = logging.getLogger(__name__)

TICK_SECONDS = 0.1
LATE_SECONDS = 0.5
"""After a longer pause between two looks at its workers the supervisor itself was late."""
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
    worker: Current
    held: SharedClaims = field(default_factory=SharedClaims)
    calls: SharedCalls | None = None
    """What it has in flight, if it is one that keeps calls in flight."""
    born: float = field(default_factory=time.monotonic)
    killed: Lost | None = None
    still: float = 0.0
    """Seconds for which it has been seen standing still."""
    guilty: dict[str, Lost] = field(default_factory=dict)
    """The work for which it was killed."""
    _until: float = 0.0
    _late: float = 0.0
    _turning: float = 0.0
    _blocked: float = 0.0
    """Seconds for which its event loop has been seen at the same call."""

    def look(self, passed: float) -> None:
        """Notes what it does, and kills it if it overruns its time or stands still for a lease.

        Args:
            passed: seconds since the last look; those for which the supervisor was late are not counted.
        """
        late, until = max(0.0, passed - LATE_SECONDS), self.worker.slot.until
        self._late = late + (self._late if until == self._until else 0.0)
        self._until = until
        self.still = self.still + passed - late if group.stands_still(self.pid) else 0.0
        if self.killed is not None:
            return
        if 0 < until < time.monotonic() - self._late:
            self._kill([self.worker.slot.work], "overran its time")
        elif (work := self._held_up_by(passed - late)) is not None:
            self._kill([work], f"is held up by {work}")
        elif overdue := self._overdue():
            self._kill(overdue, f"goes on with {', '.join(overdue[:5])}")
        elif self.still > conf().LEASE_SECONDS:
            self._kill([], "stands still")

    def _held_up_by(self, passed: float) -> str | None:
        """The call that has held up all others of its event loop for too long."""
        since, work = self.calls.turning if self.calls is not None else (0.0, "")
        same = since and since == self._turning and not self.still
        self._blocked = self._blocked + passed if same else 0.0
        self._turning = since
        return work if self._blocked > conf().BLOCKED_SECONDS else None

    def _overdue(self) -> list[str]:
        """The calls that should have been over long ago."""
        now = time.monotonic() - self._late
        return [call.work for call in self.calls or () if call.until < now]

    def _kill(self, guilty: list[str], why: str) -> None:
        log.error("worker %s %s and is killed", self.pid, why)
        self.killed = Lost.TIMED_OUT if guilty else Lost.DIED
        self.guilty = dict.fromkeys(guilty, Lost.TIMED_OUT)
        group.kill(self.pid)

    @property
    def living(self) -> LivingWorker:
        """It, as a worker that lives."""
        busy = self.worker.slot.until > 0 or any(self.calls or ())
        holds = busy and not self.still and not self.killed
        age = time.monotonic() - self.born
        calls = self.calls is not None
        return LivingWorker(self.worker.owner, self.pid, age, holds, calls)

    def gone(self, how: Lost) -> LostWorker:
        """It, as a worker that is gone.

        Where it is known which call was to blame for that, the idempotent ones beside it are innocent.

        Args:
            how: how it was lost if it was not killed for its work.
        """
        work, calls = self.worker.slot.work, list(self.calls or ())
        in_hand = {work: self.killed or how} if work else {}
        in_hand |= {
            call.work: how for call in calls if not (self.guilty and call.idempotent)
        }
        in_hand |= self.guilty
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
        self.taking_over = TakingOverProcess(queue)
        self.pruner = group.OptionalHelper(pruner.NAME, pruner.run, retention)
        self.notifier = group.OptionalHelper(
            notifier.NAME, notifier.run, notifier.has_recipients
        )
        self.stopping = False
        self._looked_at = time.monotonic()
        self._beat_at = self._sweep_at = self._spawn_at = self._tell_at = 0.0

    def run(self) -> None:
        """Runs until SIGTERM or SIGINT, or until its terminal is closed."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # else nohup has said no
            signal.signal(signal.SIGHUP, self._stop)
        connections.close_all()  # from here on its children alone have any
        while not self.stopping:
            self._reap()
            self._spawn()
            self._spawn_caller()
            self._have_taken_over()
            self.pruner.start()
            self.notifier.start()
            self._look()
            self._tell()
            time.sleep(TICK_SECONDS)
        self._end()

    def _stop(self, signum: int, frame: Any) -> None:
        self.stopping = True

    def _reap(self) -> None:
        now = time.monotonic()
        gone = [child for child in self.children.values() if group.has_ended(child.pid)]
        for child in gone:
            del self.children[child.pid]
            self.lost[child.gone(Lost.DIED)] = now
            log.warning("worker %s is gone, replacing it", child.pid)
            if now - child.born < RESPAWN_SECONDS:
                self._spawn_at = now + RESPAWN_SECONDS

    def _spawn(self) -> None:
        now = time.monotonic()
        while len(self._plain) < self.processes and now >= self._spawn_at:
            held = SharedClaims(self.taking_over.wake)
            worker = Current(held=held)
            pid = group.fork(lambda worker=worker: run(self.queue, worker))  # type: ignore[misc]
            self.children[pid] = WorkerProcess(pid, worker, held)
            self.taking_over.end()  # it does not know of this one
            self._beat_at = 0.0

    def _spawn_caller(self) -> None:
        """Has calls made, once any of this queue's work waits outside."""
        if not self.database.calls or time.monotonic() < self._spawn_at:
            return
        if any(child.calls is not None for child in self.children.values()):
            return
        queue, worker = calls_of(self.queue), Current()
        calls = SharedCalls(conf().CALLS_IN_FLIGHT)
        pid = group.fork(lambda: caller.run(queue, worker, calls))
        self.children[pid] = WorkerProcess(pid, worker, calls=calls)
        self._beat_at = 0.0

    def _have_taken_over(self) -> None:
        if self.children and self.taking_over.is_gone:
            held = {child.worker.owner: child.held for child in self._plain}
            self.taking_over.start(held)

    @property
    def _plain(self) -> list[WorkerProcess]:
        """The workers that are at one piece of work at a time."""
        return [child for child in self.children.values() if child.calls is None]

    def _look(self) -> None:
        now = time.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        for child in self.children.values():
            child.look(passed)

    def _tell(self) -> None:
        """Reports what is due, once the last report has been stored."""
        if self.database.busy and not self._told():
            return
        now = time.monotonic()
        beats, sweeps = now >= self._beat_at, now >= self._sweep_at
        if now < self._tell_at or not (beats or sweeps or self.lost):
            return
        if beats:
            self._beat_at = now + conf().HEARTBEAT_SECONDS
        if sweeps:
            self._sweep_at = now + conf().SWEEP_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311  # jitter
        living = [child.living for child in self.children.values()] if beats else None
        lost = list(self.lost)
        self.database.send(WorkerReport(self.id, self.queue, living, lost, sweeps))

    def _told(self) -> bool:
        """Whether the outcome of the last report is known. What was not stored is reported again, for a lease."""
        answer = self.database.answer()
        if answer is None:
            return False
        report, stored = answer
        now = time.monotonic()
        if not stored:
            self._beat_at, self._tell_at = 0.0, now + PAUSE_SECONDS
        self.lost = {
            lost: since
            for lost, since in self.lost.items()
            if now - since < conf().LEASE_SECONDS  # which has run out by itself then
            and not (stored and lost in report.lost)
        }
        return True

    def _end(self) -> None:
        """Asks the children to stop, kills those that do not in time, and frees what they held."""
        for child in self.children.values():
            group.ask_to_end(child.pid)
        until = time.monotonic() + GRACE_SECONDS
        left = set(self.children)
        while left and time.monotonic() < until:
            left = {pid for pid in left if not group.has_ended(pid)}
            time.sleep(0.02)
        for pid in left:
            group.end(pid)
        self.taking_over.end()
        self.pruner.end()
        self.notifier.end()
        # What they were at did not kill them, but may have had its effect.
        ended = [child.gone(Lost.CUT_OFF) for child in self.children.values()]
        until = time.monotonic() + LAST_SECONDS
        if self.database.wait(until):
            last = WorkerReport(self.id, self.queue, [], [*self.lost, *ended])
            self.database.send(last)
            self.database.wait(until)
        self.database.end()


def wait_for_database() -> None:
    """Stores the definitions of the running code, as soon as the database can be written.

    Raises:
        DatabaseError: it never will be, because its tables are missing.
    """
    while True:
        try:
            Definition.objects.exists()  # also where no definition is to be stored
            definitions.store_all()
            return
        except DatabaseError as error:
            if not passes(error):
                raise
            log.warning("the database cannot be written yet, trying again: %s", error)
            connections.close_all()
            time.sleep(PAUSE_SECONDS)


def supervise(queue: str, processes: int) -> None:
    """Runs a queue's workers on this host until SIGTERM or SIGINT."""
    Supervisor(queue, processes).run()
