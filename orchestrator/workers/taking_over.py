"""Taking over in time what busy workers hold beside the work that they are at.

It runs in a process of its own beside the supervisor, which never waits for the database, and it works while a worker's
own interpreter stands still. What it does may come late, twice or never: a worker lets go by itself as soon as it can,
and each statement takes only what is still held.
"""

from __future__ import annotations

import logging
import mmap
import os
import select
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connections

from orchestrator.conf import conf
from orchestrator.engine.claims import take_over
from orchestrator.engine.claims.held import TAKE_SECONDS
from orchestrator.engine.storage.batch import database_now
from orchestrator.queue import ring
from orchestrator.workers import group
from orchestrator.workers.held import (
    CLAIMS_SECONDS,
    SharedHeld,
)

log = logging.getLogger(__name__)

NAME = "procession-held"

AGAIN_SECONDS = 0.05
"""How soon is looked again after the database has refused."""

GLANCE_SECONDS = 0.004
"""How soon is looked again at results that their worker is seeing to itself."""

Act = Callable[[str, float], None]


class Waker:
    """Wakes who sleeps for too long, across a fork; made before it.

    Until when it sleeps is in shared memory: hardly any of those who have something for it need a system call.
    """

    UNTIL = struct.Struct("d")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self.UNTIL.size)
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)

    def wake(self, due: float) -> None:
        """Wakes it unless it is up by then, for what it can see already; by the monotonic clock."""
        if due < self.UNTIL.unpack_from(self._memory)[0]:
            with suppress(BlockingIOError):  # enough is written to wake anybody
                os.write(self._in, b".")

    def sleep(self, soonest: Callable[[], float]) -> None:
        """Sleeps until the soonest moment at which something is due, infinite for none, or until it is woken."""
        self._sleep_until(float("inf"))  # first: what is not seen by this look wakes it
        until = soonest()
        self._sleep_until(until)
        pause = None if until == float("inf") else max(0.0, until - time.monotonic())
        if select.select([self._out], [], [], pause)[0]:
            os.read(self._out, 4096)
        self._sleep_until(0.0)

    def _sleep_until(self, moment: float) -> None:
        # At once: `pack_into` would leave a 0 there for a moment.
        self._memory[:] = self.UNTIL.pack(moment)


class TakingOver:
    """Takes over what workers of one queue hold.

    Args:
        queue: whose workers.
        workers: what each holds, by its boot id.
    """

    def __init__(self, queue: str, workers: Mapping[str, SharedHeld]) -> None:
        self.queue = queue
        self.workers = workers
        self._seen: dict[tuple[str, str], float] = {}
        """What was taken over of each worker last, by the moment since when it was held."""

    def run(self, waker: Waker) -> None:
        """Runs until it is killed."""
        while True:
            waker.sleep(self.soonest)
            try:
                self.look()
            except (DatabaseError, InterfaceError) as error:
                log.warning("what busy workers hold stays with them: %s", error)
                connections.close_all()
                time.sleep(AGAIN_SECONDS)

    def look(self) -> None:
        """Takes over what has been held for too long.

        Raises:
            DatabaseError: the database refused; it may be tried again.
        """
        for act, owner, since, due in list(self._due()):
            if due <= time.monotonic():
                act(owner, since)

    def soonest(self) -> float:
        """The monotonic time at which something is due; infinite as long as nothing is held."""
        return min((due for *_, due in self._due()), default=float("inf"))

    def _due(self) -> Iterator[tuple[Act, str, float, float]]:
        """What is held and was not taken over: of which worker, since when, and when it is to be."""
        for owner, held in self.workers.items():
            since = held.results.since
            if since and self._seen.get((owner, "results")) != since:
                soonest = 0.0 if held.is_calling else time.monotonic() + GLANCE_SECONDS
                yield self._store, owner, since, max(since + TAKE_SECONDS, soonest)
            since = held.claims.since
            if since and self._seen.get((owner, "claims")) != since:
                yield self._free, owner, since, since + CLAIMS_SECONDS

    def _store(self, owner: str, since: float) -> None:
        found = self.workers[owner].unstored()
        if found.since == since:
            if not found.results:  # its worker is seeing to them now
                return
            take_over.store_returned(owner, found.results)
            ring(self.queue)
        self._seen[owner, "results"] = since

    def _free(self, owner: str, since: float) -> None:
        for _ in range(2):  # its lease may be renewed just now
            until = database_now() + timedelta(seconds=conf().LEASE_SECONDS)
            # Only now: what is claimed anew after this look is leased for longer.
            found = self.workers[owner].unbegun()
            if found.since != since or not found.works:
                break
            if take_over.unbegun(self.queue, owner, found.works, until):
                break
        self._seen[owner, "claims"] = since
        ring(self.queue)


class TakingOverProcess(group.Helper):
    """The process in which a supervisor has what its workers hold looked after; another one when these have changed."""

    def __init__(self, queue: str) -> None:
        super().__init__()
        self.queue = queue
        self._waker = Waker()

    def wake(self, due: float) -> None:
        """Has it look at what is held by a moment of the monotonic clock, from whatever process."""
        self._waker.wake(due)

    def start(self, workers: Mapping[str, SharedHeld]) -> None:
        """Looks after these workers from now on, and no longer after those of before."""
        self.end()
        self.begin(lambda: self._run(workers))

    def _run(self, workers: Mapping[str, SharedHeld]) -> None:
        group.serve(NAME)
        TakingOver(self.queue, workers).run(self._waker)
