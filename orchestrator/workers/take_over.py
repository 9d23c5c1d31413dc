"""Takes over claims and results that a worker holds while it is busy with other work.

It runs in a process of its own: the supervisor never waits for the database, and the interpreter of a busy worker may
be blocked. A worker releases its claims and stores its results itself as soon as it can. Each statement here takes only
what the worker still holds, so it may come late, twice or never.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from ctypes import c_double
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connections

from orchestrator import process_group
from orchestrator.configuration.conf import conf
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.work import take_over
from orchestrator.engine.work.worker_slice import TAKE_SECONDS
from orchestrator.queue import wake_queue
from orchestrator.workers.shared_memory.calls import shared_value
from orchestrator.workers.shared_memory.claims import CLAIMS_SECONDS, SharedClaims

log = logging.getLogger(__name__)

NAME = "procession-held"

AGAIN_SECONDS = 0.05
"""The pause after the database has refused a statement."""

GLANCE_SECONDS = 0.004
"""The pause before another look at results that their worker is storing itself."""

TakeOverAction = Callable[[str, float], None]


class Waker:
    """Wakes a sleeping process, across a fork; made before the fork.

    The end of the sleep is in shared memory, so a waker seldom needs a system call.
    """

    def __init__(self) -> None:
        self._until = shared_value(c_double)
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)

    def wake(self, due: float) -> None:
        """Wake the sleeper unless it wakes before `due`, a time of the monotonic clock."""
        if due < self._until.value:
            with suppress(BlockingIOError):  # enough is written to wake anybody
                os.write(self._in, b".")

    def sleep(self, soonest: Callable[[], float]) -> None:
        """Sleep until the time that `soonest` returns, infinite for none, or until another process wakes it."""
        # Set first: a page that this look does not see then wakes the sleeper.
        self._until.value = float("inf")
        until = soonest()
        self._until.value = until
        pause = None if until == float("inf") else max(0.0, until - time.monotonic())
        if select.select([self._out], [], [], pause)[0]:
            os.read(self._out, 4096)
        self._until.value = 0.0


class TakeOver:
    """Takes over claims and results of the busy workers of one queue.

    Args:
        queue: the queue of the workers.
        workers: what each worker holds, by its boot id.
    """

    def __init__(self, queue: str, workers: Mapping[str, SharedClaims]) -> None:
        self.queue = queue
        self.workers = workers
        self._seen: dict[tuple[str, str], float] = {}
        """The last page that was taken over of each worker, as the time since when it held."""

    def run(self, waker: Waker) -> None:
        """Run until this process is killed."""
        while True:
            waker.sleep(self.soonest)
            try:
                self.look()
            except (DatabaseError, InterfaceError) as error:
                log.warning("what busy workers hold stays with them: %s", error)
                connections.close_all()
                time.sleep(AGAIN_SECONDS)

    def look(self) -> None:
        """Take over claims and results that were held for too long.

        Raises:
            DatabaseError: the database refused; it may be tried again.
        """
        for act, owner, since, due in list(self._due()):
            if due <= time.monotonic():
                act(owner, since)

    def soonest(self) -> float:
        """Return the monotonic time of the next look; infinite if no worker holds anything."""
        return min((due for *_, due in self._due()), default=float("inf"))

    def _due(self) -> Iterator[tuple[TakeOverAction, str, float, float]]:
        """Yield each page that was not taken over: its act, worker, time since when it holds, and due time."""
        for owner, held in self.workers.items():
            since = held.results.since
            if since and self._seen.get((owner, "results")) != since:
                soonest = 0.0 if held.is_calling else time.monotonic() + GLANCE_SECONDS
                due = held.results.time_after(TAKE_SECONDS)
                yield self._store, owner, since, max(due, soonest)
            since = held.claims.since
            if since and self._seen.get((owner, "claims")) != since:
                due = held.claims.time_after(CLAIMS_SECONDS)
                yield self._free, owner, since, due

    def _store(self, owner: str, since: float) -> None:
        found = self.workers[owner].unstored()
        if found.since == since:
            if not found.results:  # its worker stores them now
                return
            take_over.store_returned(owner, found.results)
            wake_queue(self.queue)
        self._seen[owner, "results"] = since

    def _free(self, owner: str, since: float) -> None:
        for _ in range(2):  # its lease may be renewed just now
            until = database_now() + timedelta(seconds=conf().LEASE_SECONDS)
            # Read after `until`: a later claim has a longer lease.
            found = self.workers[owner].unbegun()
            if found.since != since or not found.works:
                break
            if take_over.yield_work(owner, found.works, until):
                break
        self._seen[owner, "claims"] = since
        wake_queue(self.queue)


class TakeOverProcess(process_group.Helper):
    """The process that takes over for a supervisor's workers; a new one is started for new workers."""

    def __init__(self, queue: str) -> None:
        super().__init__(NAME)
        self.queue = queue
        self._waker = Waker()

    def wake(self, due: float) -> None:
        """Wake the process for a page that is due at a time of the monotonic clock; any process may call it."""
        self._waker.wake(due)

    def start(self, workers: Mapping[str, SharedClaims]) -> None:
        """Replace the process by one for these workers."""
        self.end()
        self.begin(lambda: TakeOver(self.queue, workers).run(self._waker))
