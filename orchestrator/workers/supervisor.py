"""The supervisor of one host's workers for one queue.

It forks them, renews their leases, kills one that overruns its time, replaces those that died and frees what they held,
sweeps, and on SIGTERM stops them without charging an attempt. What a worker's steps have started ends with the worker.
It runs no work itself and needs no leader.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.db import DatabaseError, connection, connections

from orchestrator.conf import conf
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.sweep import sweep
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.models import Lost, Worker
from orchestrator.workers import group
from orchestrator.workers.current import Current
from orchestrator.workers.worker import run

log = logging.getLogger(__name__)

TICK_SECONDS = 0.1
GRACE_SECONDS = 2.0
PAUSE_SECONDS = 1.0
LOCK_SECONDS = 0.5
"""How long the supervisor waits for a lock of the database."""
RESPAWN_SECONDS = 0.5
"""A child that lived shorter than this is replaced after a pause of the same length."""


@dataclass
class WorkerProcess:
    """A worker process and what its supervisor knows of it."""

    pid: int
    worker: Current
    born: float = field(default_factory=time.monotonic)
    overran: bool = False


class Supervisor:
    """Keeps a number of workers of one queue alive."""

    def __init__(self, queue: str, processes: int) -> None:
        self.id = uuid4().hex
        self.queue = queue
        self.processes = processes
        self.children: dict[int, WorkerProcess] = {}
        self.stopping = False
        self._beat_at = self._sweep_at = self._spawn_at = 0.0

    def run(self) -> None:
        """Runs until SIGTERM or SIGINT, or until its terminal is closed."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # else nohup has said no
            signal.signal(signal.SIGHUP, self._stop)
        while not self.stopping:
            self._reap()
            self._spawn()
            self._kill_overrunning()
            self._turn()
            time.sleep(TICK_SECONDS)
        self._end()

    def _stop(self, signum: int, frame: Any) -> None:
        self.stopping = True

    def _turn(self) -> None:
        """Heartbeat and sweep, when they are due. A database that is away stops neither the workers nor this loop."""
        now = time.monotonic()
        if now < min(self._beat_at, self._sweep_at):
            return
        try:
            _be_impatient()
            if now >= self._beat_at:
                self._beat_at = now + conf().HEARTBEAT_SECONDS
                self._beat()
            if now >= self._sweep_at:
                self._sweep_at = now + conf().SWEEP_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311  # jitter
                sweep(self.queue)
                Worker.objects.filter(supervisor=self.id).update(
                    swept_at=database_now()
                )
        except DatabaseError as error:
            log.warning("the database refused the supervisor, trying again: %s", error)
            connections.close_all()

    def _beat(self) -> None:
        now = database_now()
        owners = [child.worker.owner for child in self.children.values()]
        # What stands in the name of a child that is at nothing was left by a commit whose answer was lost.
        busy = [c.worker.owner for c in self.children.values() if c.worker.slot.work]
        if busy:
            leases.renew(self.queue, busy)
        for child in self.children.values():
            Worker.objects.update_or_create(
                id=child.worker.owner,
                defaults={"seen_at": now},
                create_defaults={
                    "supervisor": self.id,
                    "host": socket.gethostname(),
                    "pid": child.pid,
                    "queue": self.queue,
                    "started_at": now,
                    "seen_at": now,
                },
            )
        Worker.objects.filter(supervisor=self.id).exclude(id__in=owners).delete()

    def _spawn(self) -> None:
        while (
            len(self.children) < self.processes and time.monotonic() >= self._spawn_at
        ):
            connections.close_all()  # a child must never share its parent's connections
            worker = Current()
            pid = os.fork()
            if pid == 0:
                self._be_child(worker)
            group.lead(pid)  # here and in the child: before either goes on
            self.children[pid] = WorkerProcess(pid, worker)
            self._beat_at = 0.0

    def _be_child(self, worker: Current) -> None:
        status = 1
        try:
            group.lead()
            run(self.queue, worker)
        except SystemExit as exit_:
            status = exit_.code if isinstance(exit_.code, int) else 1
        except BaseException:
            log.exception("worker %s failed", os.getpid())
        finally:
            os._exit(status)

    def _reap(self) -> None:
        gone = [child for child in self.children.values() if group.has_ended(child.pid)]
        for child in gone:
            del self.children[child.pid]
            log.warning("worker %s is gone, replacing it", child.pid)
            if time.monotonic() - child.born < RESPAWN_SECONDS:
                self._spawn_at = time.monotonic() + RESPAWN_SECONDS
        if gone:
            self._free(
                gone,
                {c.worker.slot.work: _end_of(c) for c in gone if c.worker.slot.work},
            )

    def _free(
        self, gone: Collection[WorkerProcess], in_hand: Mapping[str, Lost] | None = None
    ) -> None:
        owners = [child.worker.owner for child in gone]
        try:
            leases.end(self.queue, owners, in_hand=in_hand)
        except DatabaseError as error:
            log.warning("the leases of dead workers run out by themselves: %s", error)
            connections.close_all()

    def _kill_overrunning(self) -> None:
        for child in self.children.values():
            if child.worker.slot.overrun:
                log.error("worker %s overran its time and is killed", child.pid)
                child.worker.slot.forgive()
                child.overran = True
                group.kill(child.pid)

    def _end(self) -> None:
        """Asks the children to stop, kills those that do not in time, and frees what they held."""
        for child in self.children.values():
            group.ask_to_end(child.pid)
        until = time.monotonic() + GRACE_SECONDS
        left = dict(self.children)
        while left and time.monotonic() < until:
            left = {
                pid: child for pid, child in left.items() if not group.has_ended(pid)
            }
            time.sleep(0.02)
        for pid in left:
            group.kill(pid)
            os.waitpid(pid, 0)
        if self.children:
            self._free(self.children.values())
        try:
            Worker.objects.filter(supervisor=self.id).delete()
        except DatabaseError as error:
            log.warning("the workers' rows stay until the next sweep: %s", error)


def wait_for_database() -> None:
    """Stores the definitions of the running code, as soon as the database can be written.

    Raises:
        DatabaseError: it never will be, because its tables are missing.
    """
    while True:
        try:
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


def _be_impatient() -> None:
    """Lets this connection wait for no lock: the one who holds it may be the worker that is to be killed."""
    lock = {"postgresql": "SET lock_timeout = %s", "sqlite": "PRAGMA busy_timeout = %s"}
    with connection.cursor() as cursor:
        cursor.execute(lock[connection.vendor] % int(LOCK_SECONDS * 1000))


def _end_of(child: WorkerProcess) -> Lost:
    """How a child that is gone was lost, for the work it was at."""
    return Lost.TIMED_OUT if child.overran else Lost.DIED
