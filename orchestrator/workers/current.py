"""The worker that runs in this process, for the job that answers the doorbell."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from django.db import DatabaseError, InterfaceError, connections

from orchestrator.conf import conf
from orchestrator.engine import drain
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.held import UNSEEN, Held
from orchestrator.engine.claims.worker_slice import Reporting
from orchestrator.engine.storage import uncertain
from orchestrator.models import Lost
from orchestrator.workers.slot import Slot

log = logging.getLogger(__name__)


@dataclass
class Current:
    """A worker's boot id, its slot, where it shows what it holds, and whether it was asked to stop."""

    owner: str = field(default_factory=lambda: uuid4().hex)
    slot: Slot = field(default_factory=Slot)
    held: Held = UNSEEN
    stopping: Callable[[], bool] = lambda: False

    def drain(self, queue: str) -> int:
        """Runs the queue's ready work for one time slice; none while the database is away."""
        for _ in range(2):  # a connection that was cut is only noticed when it is used
            try:
                return self._drain(queue)
            except (DatabaseError, InterfaceError) as error:
                log.warning("the database refused, trying again: %s", error)
                uncertain.note()  # it may have been the answer to a claim that was lost
                connections.close_all()
        return 0

    def _drain(self, queue: str) -> int:
        self._end_cut_off()
        return drain.drain(
            queue,
            owner=self.owner,
            seconds=conf().SLICE_SECONDS,
            stop=self.stopping,
            watch=self._watch,
            held=self.held,
        )

    @contextmanager
    def _watch(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> Iterator[Reporting]:
        """Watches a piece of work. If the database does not take what came of it, the slot goes on naming it.

        So does whoever is left know of it, this worker or its supervisor.
        """
        try:
            with self.slot.watch(seconds, work, heartbeat) as reporting:
                yield reporting
        except (DatabaseError, InterfaceError):
            if not self.slot.work:  # else it is a part of what the worker is still at
                self.slot.write(0.0, work)
            raise

    def _end_cut_off(self) -> None:
        """Frees the piece of work of which nothing could be stored, as one that may have had its effect."""
        if work := self.slot.work:
            leases.end([self.owner], in_hand={work: Lost.CUT_OFF})
            self.slot.write(0.0, "")


_mine: list[Current] = []


def current() -> Current:
    """This process's worker; one of its own where none was set up."""
    if not _mine:
        _mine.append(Current())
    return _mine[-1]


def become(worker: Current) -> None:
    """Makes a worker this process's own."""
    _mine[:] = [worker]
