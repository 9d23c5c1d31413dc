"""What a supervisor reports of its workers, and how it is stored: all that a host's workers need of the database."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from django.conf import settings

from orchestrator import queue as doorbell
from orchestrator.engine.claims import leases, take_over
from orchestrator.engine.claims.due import sweep
from orchestrator.engine.storage.batch import database_now, send
from orchestrator.models import Lost, Worker
from orchestrator.workers.held import results_of


@dataclass(frozen=True)
class LivingWorker:
    """A worker that lives.

    Args:
        owner: its boot id.
        pid: its process.
        age: seconds that it has lived.
        holds: whether what stands in its name is its own to go on with. What a worker that is at nothing has was left
            by a commit whose answer was lost, and one that stands still goes on with nothing.
        calls: whether it is one that keeps calls in flight.
    """

    owner: str
    pid: int
    age: float
    holds: bool
    calls: bool = False


@dataclass(frozen=True)
class LostWorker:
    """A worker that is gone.

    Args:
        owner: its boot id.
        in_hand: the names of the work that it was at, with how it was lost; without what is innocent.
        returned: the results that it held, as they were shown.
    """

    owner: str
    in_hand: tuple[tuple[str, Lost], ...] = ()
    returned: str = ""


@dataclass(frozen=True)
class WorkerReport:
    """What there is to store.

    Args:
        supervisor: whose report it is.
        queue: whose work its workers run.
        living: its workers; None where it is too early to tell of them again.
        lost: its workers that are gone and whose work must be freed.
        sweep: whether to look for due work.
    """

    supervisor: str
    queue: str
    living: list[LivingWorker] | None = None
    lost: list[LostWorker] = field(default_factory=list)
    sweep: bool = False

    def store(self) -> bool:
        """Frees what lost workers held, renews what living ones hold, and rings for what is due.

        Returns:
            Whether work is due that waits outside.

        Raises:
            DatabaseError: it could not be stored, or only in part; storing it again does no harm.
        """
        for one in self.lost:
            send(take_over.returned(one.owner, results_of(one.returned)))
            leases.end([one.owner], in_hand=dict(one.in_hand))
        if self.living is not None:
            self._store_living(self.living)
        if not (self.sweep or self.lost):
            return False
        sweep(self.queue)
        calls = sweep(doorbell.calls_of(self.queue))
        mine = Worker.objects.filter(supervisor=self.supervisor)
        mine.update(swept_at=database_now())
        return calls

    def _store_living(self, living: list[LivingWorker]) -> None:
        now = database_now()
        leases.renew(sorted(one.owner for one in living if one.holds))
        owners = [worker.owner for worker in living]
        if Worker.objects.filter(id__in=owners).update(seen_at=now) < len(owners):
            rows = (self._row(worker, now) for worker in living)
            Worker.objects.bulk_create(rows, ignore_conflicts=True)
        gone = list(Worker.objects.gone(self.supervisor, owners, now))
        Worker.objects.filter(id__in=[worker.id for worker in gone]).delete()
        listening = [worker.owner for worker in living if not worker.calls]
        self._tell_the_doorbell(listening, gone)

    def _row(self, worker: LivingWorker, now: datetime) -> Worker:
        return Worker(
            id=worker.owner,
            supervisor=self.supervisor,
            host=socket.gethostname(),
            pid=worker.pid,
            queue=doorbell.calls_of(self.queue) if worker.calls else self.queue,
            started_at=now - timedelta(seconds=worker.age),
            seen_at=now,
        )

    def _tell_the_doorbell(self, owners: list[str], gone: Iterable[Worker]) -> None:
        if not doorbell.answers(self.queue):
            return  # each question after the first would wait as long
        doorbell.add_workers(self.queue, owners)
        for queue, workers in groupby(gone, lambda worker: worker.queue):
            if doorbell.in_rq(queue) in settings.RQ_QUEUES:
                doorbell.remove_workers(queue, [worker.id for worker in workers])
        # A worker that is neither in the table nor heard of in Redis was left by a supervisor that is gone.
        unheard = doorbell.unheard_workers(self.queue)
        known = Worker.objects.filter(id__in=unheard).values_list("id", flat=True)
        if unheard and (strangers := unheard.difference(known)):
            doorbell.remove_workers(self.queue, strangers)
