"""The worker that runs in this process, for the job that answers the doorbell."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from uuid import uuid4

from django.db import DatabaseError, InterfaceError, connections

from orchestrator.configuration.conf import conf
from orchestrator.engine.loops import drain
from orchestrator.engine.sql.connection import note_uncertain_commit
from orchestrator.engine.work import leases
from orchestrator.engine.work.worker_slice import UNSEEN, HeldWork, Reporting
from orchestrator.models import Lost
from orchestrator.workers.shared_memory.slot import Slot, WatchedWork

log = logging.getLogger(__name__)


@dataclass
class CurrentWorker:
    """A worker: its boot id, its slot, what it holds, and whether it was asked to stop."""

    owner: str = field(default_factory=lambda: uuid4().hex)
    slot: Slot = field(default_factory=Slot)
    held: HeldWork = UNSEEN
    stopping: Callable[[], bool] = lambda: False

    def drain(self, queue: str) -> int:
        """Run the queue's ready work for one time slice; none while the database is away."""
        for _ in range(2):  # a connection that was cut shows only in use
            try:
                return self._drain(queue)
            except (DatabaseError, InterfaceError) as error:
                log.warning("the database refused, trying again: %s", error)
                self._begin_anew()
            except BaseException:
                self._begin_anew()
                raise
        return 0

    def _begin_anew(self) -> None:
        """Give up what this worker may hold without knowing it, and its connections, which may be spoilt."""
        note_uncertain_commit()  # the lost answer may be that of a claim
        connections.close_all()

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

    def _watch(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> AbstractContextManager[Reporting]:
        return _WorkOfWorker(self.slot, seconds, work, heartbeat)

    def _end_cut_off(self) -> None:
        """End the piece of work without a stored outcome, as one that may have had its effect."""
        if work := self.slot.work:
            leases.end_leases([self.owner], running={work: Lost.CUT_OFF})
            self.slot.write(0.0, "")


class _WorkOfWorker(WatchedWork):
    """A watched piece of work. If the database refuses its outcome, the slot keeps its name.

    By that the worker, or its supervisor, ends it later.
    """

    def __exit__(self, *failure: object) -> None:
        super().__exit__()
        refused = isinstance(failure[1], DatabaseError | InterfaceError)
        if refused and not self._slot.work:  # else it is a part of work that still runs
            self._slot.write(0.0, self._work)


_mine: list[CurrentWorker] = []


def current() -> CurrentWorker:
    """Return this process's worker; make one if none was set."""
    if not _mine:
        _mine.append(CurrentWorker())
    return _mine[-1]


def set_current(worker: CurrentWorker) -> None:
    """Set this process's worker."""
    _mine[:] = [worker]
