"""A worker process that keeps calls in flight: work that waits outside, many at once.

The first thread does all that concerns the database: it claims work, prepares calls, stores their outcomes and answers
their questions. The second thread runs the event loop. The third listens for bells.
"""

from __future__ import annotations

import asyncio
import logging
import queue as queues
import random
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from redis.exceptions import RedisError

from orchestrator import process_group
from orchestrator.configuration.conf import conf
from orchestrator.engine.loops.ready_calls import CallsToMake, find_held_calls
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.sql.connection import note_uncertain_commit, passes
from orchestrator.engine.storage.application_code.descriptors import watch_descriptors
from orchestrator.engine.work import leases
from orchestrator.engine.work.call_room import Room
from orchestrator.engine.work.calls import Call
from orchestrator.engine.work.worker_slice import MOST, WorkerSlice
from orchestrator.models import Lost
from orchestrator.queue import listen_for_bells, wake_queue
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.event_loop import (
    CallEnd,
    EventLoop,
    Flight,
    running_flight,
)
from orchestrator.workers.shared_memory.calls import SharedCalls

log = logging.getLogger(__name__)

NAME = "procession-call"

IDLE_SECONDS = 1.0
"""The longest pause of the first thread."""
AGAIN_SECONDS = 0.3
"""The pause before a refused statement is sent again, about."""
POLLING_SECONDS = 2.0
"""How long the database is polled before Redis is tried again."""

QueuedAction = Callable[[], None]


class Caller:
    """Keeps calls of one queue in flight.

    Args:
        queue: the calls queue.
        worker: its boot id and slot.
        shared: shows its supervisor the calls in flight.
    """

    def __init__(self, queue: str, worker: CurrentWorker, shared: SharedCalls) -> None:
        self.queue, self.worker, self.shared = queue, worker, shared
        self.flights: dict[Call, Flight] = {}
        self.unneeded: set[Call] = set()
        """Calls whose work another worker has taken over or settled, while their threads still run."""
        self.again: list[tuple[float, QueuedAction]] = []
        """Refused writes, each with the time of the next attempt."""
        self.leaving = False
        """Whether a call overruns and cannot be ended: this worker begins no more calls, and ends."""
        self.polling = True
        """Whether Redis is out of reach, so that the database is polled."""
        self._acts: queues.SimpleQueue[QueuedAction | CallEnd] = queues.SimpleQueue()
        self._looked_at = time.monotonic()
        self._claim_at = 0.0
        worker_slice = WorkerSlice(queue, worker.owner, self._ends, worker.slot.watch)
        self.room = Room(lambda: [*self.flights, *self.unneeded], lambda: shared.room)
        self.to_make = CallsToMake(worker_slice, self.room)
        self.loop = EventLoop(self._acts.put, shared)

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until this process must be replaced."""
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        signal.signal(signal.SIGINT, self._ask_to_stop)
        threading.Thread(target=self._listen, name="bells", daemon=True).start()
        while self.flights or not self._ends():
            try:
                self._go_on()
            except (DatabaseError, InterfaceError) as error:
                log.warning("the database refused, trying again: %s", error)
                note_uncertain_commit()
                connections.close_all()
                self._claim_at = time.monotonic() + AGAIN_SECONDS
        connections.close_all()
        sys.exit(0)

    def _ends(self) -> bool:
        return self.worker.stopping() or self.leaving

    def _ask_to_stop(self, signum: int, frame: Any) -> None:
        self.worker.stopping = lambda: True
        self._acts.put(_wake)

    def _go_on(self) -> None:
        names = [call.name for call in self.flights]
        leases.end_uncertain_leases(self.worker.owner, names)
        found = self._due()
        for act in found:
            if not isinstance(act, CallEnd):
                act()
        self._settle_all([act for act in found if isinstance(act, CallEnd)])
        if time.monotonic() - self._looked_at > conf().HEARTBEAT_SECONDS:
            self._looked_at = time.monotonic()
            self._end_lost()
        if not self._ends() and self.shared.room and self._may_claim():
            self._claim()

    def _due(self) -> list[QueuedAction | CallEnd]:
        """Return the acts that are due now; wait if there are none."""
        now = time.monotonic()
        found: list[QueuedAction | CallEnd] = [
            act for due, act in self.again if due <= now
        ]
        self.again = [(due, act) for due, act in self.again if due > now]
        try:
            if not found:
                found.append(self._acts.get(timeout=self._pause(now)))
            while True:
                found.append(self._acts.get_nowait())
        except queues.Empty:
            return found

    def _pause(self, now: float) -> float:
        if self.to_make.more and self.shared.room and not self._ends():
            return max(0.0, min(self._claim_at - now, IDLE_SECONDS))
        ends = [due for due, _ in self.again]
        if self.polling:
            ends.append(self._claim_at)
        return max(0.0, min([*ends, now + IDLE_SECONDS]) - now)

    def _may_claim(self) -> bool:
        now = time.monotonic()
        return now >= self._claim_at and (self.to_make.more or self.polling)

    # Beginning calls

    def _claim(self) -> None:
        asked = time.monotonic()
        found = self.to_make.claim(self.shared.room)
        if self.polling and not self.to_make.more:
            self._claim_at = time.monotonic() + conf().POLL_SECONDS
        begun, call = list[Flight](), None
        try:
            for work in found:
                if self._ends():
                    break  # its supervisor gives back what is not begun
                call = self.to_make.prepare(work, call)
                if call is not None:
                    begun.append(self._show(call))
            if leases.lease_may_end(asked):
                self._keep_own(begun)
        finally:  # the database may have refused one of them
            self.room.note_begun()
            self.loop.begin(begun)

    def _keep_own(self, begun: list[Flight]) -> None:
        """Drop the calls whose work another worker claimed during their preparation.

        Raises:
            DatabaseError: the owner is not known; all of them are dropped.
        """
        mine = set[Call]()
        try:
            mine = find_held_calls(self.worker.owner, [flight.call for flight in begun])
        finally:
            for flight in begun:
                if flight.call not in mine:
                    self._drop(flight)
            begun[:] = [flight for flight in begun if flight.call in mine]

    def _show(self, call: Call) -> Flight:
        """Show the supervisor a call that is about to begin."""
        until = time.monotonic() + call.timeout + conf().EVENT_TIMEOUT
        place = self.shared.begin(call.name, until, idempotent=call.idempotent)
        flight = self.flights[call] = Flight(call, place)
        call.ask = self._ask
        return flight

    async def _ask(self, function: Callable[[], Any]) -> Any:
        """Call a function in the first thread, from the event loop."""
        future = Future[Any]()
        self._acts.put(partial(self._answer, future, function))
        return await asyncio.wrap_future(future)

    def _answer(self, future: Future[Any], function: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return  # the call has ended
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001  # the call gets it
            if passes(error):
                note_uncertain_commit()
                connections.close_all()
            future.set_exception(error)

    # Outcomes of calls

    def _settle_all(self, came: Sequence[CallEnd]) -> None:
        """Store the outcomes of calls, in one commit where that is possible."""
        sets = defaultdict[Hashable, list[CallEnd]](list)
        for one in came:
            good = one.error is None and not one.late
            together = one.call.together if good else None
            if together is None:
                self._settle([one])
            else:
                sets[together].append(one)
        for found in sets.values():
            for begin in range(0, len(found), MOST):
                self._settle(found[begin : begin + MOST])

    def _settle(self, came: Sequence[CallEnd]) -> None:
        """Store the outcomes of calls; retry a refused write as long as their work is claimed."""
        for one in came:
            if one.goes_on and not self.leaving:
                log.error("%s does not end: the worker is replaced", one.call.name)
                self.leaving = True
            if one.call in self.unneeded:
                self.unneeded.remove(one.call)
                self.to_make.more |= self.room.note_end(one.call)
        came = [one for one in came if one.call in self.flights]  # else others have it
        flights = [self.flights[one.call] for one in came]
        for flight in flights:
            self.shared.set_end(flight.place, float("inf"))
        try:
            following = self._store(came)
        except (DatabaseError, InterfaceError) as error:
            log.warning("outcomes of calls are kept, trying again: %s", error)
            self._settle_later(came)
            return
        for flight in flights:
            self._drop(flight)
        begun = [self._show(call) for call in following]
        self.room.note_begun()
        self.loop.begin(begun)

    def _settle_later(self, came: Sequence[CallEnd]) -> None:
        pause = AGAIN_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311  # spread, not secrecy
        again = partial(self._settle, came)
        self.again.append((time.monotonic() + pause, again))
        note_uncertain_commit()
        connections.close_all()
        self.room.note_begun()

    def _store(self, came: Sequence[CallEnd]) -> list[Call]:
        """Store the outcome of one call, or of several of one commit; return the calls that follow."""
        if not came:
            return []
        if len(came) > 1:
            given = [(one.call, one.result) for one in came]
            return came[0].call.store_results(given)
        [one] = came
        if one.late:
            lost = {one.call.name: Lost.TIMED_OUT}
            send(leases.charge_lost([self.worker.owner], lost, database_now()))
            self.to_make.more = True
            wake_queue(self.queue)
            return []
        call, error = one.call, one.error
        following = call.store_error(error) if error else call.store_result(one.result)
        return [] if following is None else [following]

    def _drop(self, flight: Flight) -> None:
        del self.flights[flight.call]
        self.shared.end(flight.place)
        self.to_make.more |= self.room.note_end(flight.call)

    def _end_lost(self) -> None:
        """End the calls whose work another worker has claimed, or whose processes were cancelled."""
        if not self.flights:
            return
        mine = find_held_calls(self.worker.owner, self.flights)
        for call in self.flights.keys() - mine:
            log.info("another worker has settled %s", call.name)
            flight = self.flights[call]
            self.loop.cancel(flight)
            self._drop(flight)
            if call.threads is not None:
                self.unneeded.add(call)

    # Bells

    def _listen(self) -> None:
        """Listen for bells, in a thread of its own."""
        while True:
            try:
                for rang in listen_for_bells(self.queue):
                    self.polling = False
                    if rang:
                        self._acts.put(self._claim_more)
            except (RedisError, OSError) as error:
                log.warning("Redis is out of reach, polling the database: %s", error)
                self.polling = True
                self._acts.put(self._claim_more)
                time.sleep(POLLING_SECONDS)

    def _claim_more(self) -> None:
        self.to_make.more = True
        self._claim_at = 0.0  # it may have polled before it heard


def _wake() -> None:
    """Do nothing: as an act, it only ends the pause of the first thread."""


def _blame(worker: CurrentWorker, shared: SharedCalls) -> None:
    """Show the work whose code has spoilt this worker: a call, or what the first thread is at."""
    flight = running_flight()
    shared.blame(worker.slot.work if flight is None else flight.call.name)


def run_caller(queue: str, worker: CurrentWorker, shared: SharedCalls) -> None:
    """Run a worker that keeps calls of a queue in flight in this process."""
    process_group.name_process(NAME)
    watch_descriptors(partial(_blame, worker, shared))
    Caller(queue, worker, shared).run()
