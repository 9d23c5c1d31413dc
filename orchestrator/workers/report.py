"""The report of a supervisor on its workers, and its storage: leases, heartbeats, lost work and sweeps."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from django.conf import settings

from orchestrator import queue as doorbell
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.work import leases, take_over
from orchestrator.engine.work.claims import sweep
from orchestrator.models import Lost, Worker
from orchestrator.workers.shared_memory.claims import parse_results


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

    def store(self) -> bool:
        """Release the work of lost workers, renew the leases of live ones, and wake queues with due work.

        Returns:
            Whether calls are due.

        Raises:
            DatabaseError: it is stored in part or not at all; storing it again does no harm.
        """
        for one in self.lost:
            send(take_over.result_writes(one.owner, parse_results(one.returned)))
            leases.end_leases([one.owner], running=dict(one.in_hand))
        if self.living is not None:
            self._store_living(self.living)
        if not (self.sweep or self.lost):
            return False
        sweep(self.queue)
        calls = sweep(doorbell.calls_queue(self.queue))
        mine = Worker.objects.filter(supervisor=self.supervisor)
        mine.update(swept_at=database_now())
        return calls

    def _store_living(self, living: list[LivingWorker]) -> None:
        now = database_now()
        leases.renew_leases(sorted(one.owner for one in living if one.holds))
        owners = [worker.owner for worker in living]
        if Worker.objects.filter(id__in=owners).update(seen_at=now) < len(owners):
            rows = (self._row(worker, now) for worker in living)
            Worker.objects.bulk_create(rows, ignore_conflicts=True)
        gone = list(Worker.objects.gone(self.supervisor, owners, now))
        Worker.objects.filter(id__in=[worker.id for worker in gone]).delete()
        listening = [worker.owner for worker in living if not worker.calls]
        self._register_in_redis(listening, gone)

    def _row(self, worker: LivingWorker, now: datetime) -> Worker:
        return Worker(
            id=worker.owner,
            supervisor=self.supervisor,
            host=socket.gethostname(),
            pid=worker.pid,
            queue=doorbell.calls_queue(self.queue) if worker.calls else self.queue,
            started_at=now - timedelta(seconds=worker.age),
            seen_at=now,
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
