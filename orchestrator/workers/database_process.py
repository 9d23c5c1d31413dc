"""The report of a supervisor on its workers, and the process that stores it: leases, heartbeats, lost work and sweeps.

The supervisor itself never waits for the database: a connection may fall silent while workers must be killed, replaced
and stopped. It is a process and not a thread, because the supervisor forks.
"""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from orchestrator import process_group
from orchestrator import queue as doorbell
from orchestrator.definition.codec import decode, encode
from orchestrator.engine.loops.clock_watch import ClockWatch, SetBack
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.work import leases, take_over
from orchestrator.engine.work.claims import sweep
from orchestrator.engine.work.failures import HOLD, resolve_left_visits
from orchestrator.models import Lost, Worker
from orchestrator.workers.shared_memory.claims import parse_results

log = logging.getLogger(__name__)

NAME = "procession-db"
ANSWER_SECONDS = 5.0
"""How long a report may take before the process is killed and replaced."""
LOCK_SECONDS = 0.5
"""How long a statement waits for a lock of the database."""
LIMIT_LOCKS = f"SET LOCAL lock_timeout = {int(LOCK_SECONDS * 1000)}"
IDLE = 0
"""libpq's status of a connection on which no transaction has begun."""


class DatabaseProcess(process_group.Helper):
    """Stores one report at a time; `send` starts it, also again after it has died."""

    _line: Connection[Any, Any]

    def __init__(self) -> None:
        super().__init__(NAME)
        self._report: WorkerReport | None = None
        self._since = 0.0
        self.calls = False
        """Whether it has seen calls that are due."""

    @property
    def busy(self) -> bool:
        """Whether it has a report of unknown outcome."""
        return self._report is not None

    def send(self, report: WorkerReport) -> None:
        """Give it a report to store; it must not be busy."""
        if self.is_gone:
            self._line, its = Pipe()
            self.begin(lambda: _store_all(its))
            its.close()
        self._report, self._since = report, time.monotonic()
        try:
            self._line.send_bytes(json.dumps(encode(report)).encode())
        except OSError as error:  # it has died; that is its answer
            log.warning("process %s takes no report: %s", self.pid, error)

    def answer(self) -> tuple[WorkerReport, bool] | None:
        """Return its report and whether that was stored; None while that is not known."""
        report = self._report
        if report is None:
            return None
        if self._line.poll():
            stored = self._receive()
        elif time.monotonic() - self._since > ANSWER_SECONDS:
            log.error("the database does not answer, process %s is killed", self.pid)
            self.end()
            stored = False
        else:
            return None
        self._report = None
        return report, stored

    def wait(self, until: float) -> bool:
        """Wait for its answer until a time of the monotonic clock; return whether its report is stored."""
        answer = None
        while self.busy and time.monotonic() < until:
            answer = self.answer()
            time.sleep(0.01)
        return answer is not None and answer[1]

    def end(self) -> None:
        """Kill it; its report may be stored or not."""
        super().end()
        self._report = None

    def _receive(self) -> bool:
        try:
            calls: bool | None = json.loads(self._line.recv_bytes())
        except (EOFError, OSError):
            log.error("process %s, which writes to the database, is gone", self.pid)
            self.end()
            return False
        self.calls = self.calls or bool(calls)
        return calls is not None


def _store_all(line: Connection[Any, Any]) -> None:
    """Store report after report, until the supervisor has ended or kills this process."""
    sweeps: Sweeps | None = None
    with limit_lock_waiting(), suppress(EOFError):
        while True:
            report = decode(WorkerReport, json.loads(line.recv_bytes()))
            sweeps = sweeps or Sweeps(report.queue)
            line.send_bytes(json.dumps(_store(report, sweeps)).encode())


class Sweeps:
    """The looks of one supervisor that come with a sweep.

    Args:
        queue: its queue.
    """

    def __init__(self, queue: str) -> None:
        self.clock = ClockWatch(queue)
        self._visits_at = 0.0

    def look(self) -> None:
        """Look at the clock, and now and then at incidents about visits that have ended.

        Raises:
            DatabaseError: the next look does the same.
        """
        self.clock.look()
        if time.monotonic() >= self._visits_at:
            resolve_left_visits()
            self._visits_at = time.monotonic() + HOLD.total_seconds()


def _store(report: WorkerReport, sweeps: Sweeps) -> bool | None:
    """Store a report; return whether calls are due, None if the database has refused it."""
    try:
        if report.sweep:
            sweeps.look()
        return report.store(sweeps.clock.last)
    except DatabaseError as error:
        log.warning("the database refused the supervisor, trying again: %s", error)
        connections.close_all()
        return None


def limit_lock_waiting() -> AbstractContextManager[None]:
    """Limit how long a statement waits for a lock: its holder may be a worker that must be killed."""
    if connection.vendor == "postgresql":
        return connection.execute_wrapper(_limit_locks)
    connection_created.connect(_limit_sqlite_locks)
    return nullcontext()


def _limit_locks(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    """Set the limit as each transaction begins: through a pooler, the next one may have another session."""
    if not connection.in_atomic_block:
        with transaction.atomic():
            return _limit_locks(execute, sql, params, many, context)
    if connection.connection.info.transaction_status == IDLE:
        with connection.wrap_database_errors:
            connection.connection.execute(LIMIT_LOCKS)
    return execute(sql, params, many, context)


def _limit_sqlite_locks(connection: BaseDatabaseWrapper, **signal: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}")


@dataclass(frozen=True)
class LivingWorker:
    """A live worker.

    Args:
        owner: its boot id.
        pid: its process.
        age: seconds since its start.
        holds: whether to renew its leases. Those of an idle worker are left from a commit whose answer was lost; a
            stopped worker does not work.
        calls: whether it keeps calls in flight.
    """

    owner: str
    pid: int
    age: float
    holds: bool
    calls: bool = False


@dataclass(frozen=True)
class LostWorker:
    """A lost worker.

    Args:
        owner: its boot id.
        in_hand: the names of its running work, with how it was lost; without calls that were not to blame.
        returned: its unstored results, as it has shown them.
    """

    owner: str
    in_hand: tuple[tuple[str, Lost], ...] = ()
    returned: str = ""


@dataclass(frozen=True)
class WorkerReport:
    """A report to store.

    Args:
        supervisor: the supervisor's id.
        queue: the queue of its workers.
        living: its live workers; None between two heartbeats.
        lost: its lost workers, whose work must be released.
        sweep: whether to look for due work.
    """

    supervisor: str
    queue: str
    living: list[LivingWorker] | None = None
    lost: list[LostWorker] = field(default_factory=list)
    sweep: bool = False

    def store(self, set_back: SetBack | None = None) -> bool:
        """Release the work of lost workers, renew the leases of live ones, and wake queues with due work.

        Args:
            set_back: the last time that the database's clock was seen to go back, for the console.

        Returns:
            Whether calls are due.

        Raises:
            DatabaseError: it is stored in part or not at all; storing it again does no harm.
        """
        for one in self.lost:
            send(take_over.result_writes(one.owner, parse_results(one.returned)))
            leases.end_leases([one.owner], running=dict(one.in_hand))
        if self.living is not None:
            self._store_living(self.living, set_back)
        if not (self.sweep or self.lost):
            return False
        sweep(self.queue)
        calls = sweep(doorbell.calls_queue(self.queue))
        mine = Worker.objects.filter(supervisor=self.supervisor)
        mine.update(swept_at=database_now())
        return calls

    def _store_living(
        self, living: list[LivingWorker], set_back: SetBack | None
    ) -> None:
        now = database_now()
        told = (
            {"set_back_at": set_back.at, "set_back_from": set_back.was}
            if set_back
            else {}
        )
        leases.renew_leases(sorted(one.owner for one in living if one.holds))
        owners = [worker.owner for worker in living]
        if Worker.objects.filter(id__in=owners).update(seen_at=now, **told) < len(
            owners
        ):
            rows = (self._row(worker, now, told) for worker in living)
            Worker.objects.bulk_create(rows, ignore_conflicts=True)
        gone = list(Worker.objects.gone(self.supervisor, owners, now))
        Worker.objects.filter(id__in=[worker.id for worker in gone]).delete()
        listening = [worker.owner for worker in living if not worker.calls]
        self._register_in_redis(listening, gone)

    def _row(
        self, worker: LivingWorker, now: datetime, told: dict[str, datetime]
    ) -> Worker:
        return Worker(
            id=worker.owner,
            supervisor=self.supervisor,
            host=socket.gethostname(),
            pid=worker.pid,
            queue=doorbell.calls_queue(self.queue) if worker.calls else self.queue,
            started_at=now - timedelta(seconds=worker.age),
            seen_at=now,
            **told,
        )

    def _register_in_redis(self, owners: list[str], gone: Iterable[Worker]) -> None:
        if not doorbell.redis_responds(self.queue):
            return  # each question after the first would wait as long
        doorbell.add_workers(self.queue, owners)
        for queue, workers in groupby(gone, lambda worker: worker.queue):
            if doorbell.rq_name(queue) in settings.RQ_QUEUES:
                doorbell.remove_workers(queue, [worker.id for worker in workers])
        # A worker without a row and without a heartbeat in Redis was left by a lost supervisor.
        unheard = doorbell.silent_workers(self.queue)
        known = Worker.objects.filter(id__in=unheard).values_list("id", flat=True)
        if unheard and (strangers := unheard.difference(known)):
            doorbell.remove_workers(self.queue, strangers)
