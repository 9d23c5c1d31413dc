"""Games of events, sent to process managers that wait for them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from bench import checks, clock
from bench.game import Figures, Game, Size
from bench.idle import LOOK_SECONDS, idle_figures
from bench.ping import Returned, Served, register_handlers
from bench.run import QUEUE, hold_back, registered_definition, release
from bench.workers import Team, workers
from orchestrator.definition import ProcessManager
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.processes.events import Envelope, send_event, send_events
from orchestrator.engine.processes.starts import start_process
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import InboxEvent, IssuedCommand

SOURCE = "bench"


class EventGame(Game):
    """Events for waiting processes.

    Args:
        size: `count` events.
        name: its name in the report.
        definition: the process manager.
        commands: how many commands the definition issues for each event.
        batch: how many events one sender sends together; 1 sends them one by one.
        by_key: whether events name their processes by their keys, as those from outside do; else by their ids.
    """

    unit = "event"
    has_workers = True
    matches = 200
    """How many processes get the events."""

    def __init__(
        self,
        size: Size,
        name: str,
        definition: type[ProcessManager],
        commands: int = 0,
        batch: int = 1,
        *,
        by_key: bool = False,
    ) -> None:
        super().__init__(size)
        self.name = name
        self.definition = definition
        self.commands = commands
        self.batch = batch
        self.by_key = by_key
        self.sent = 0
        self.waiting: list[UUID] = []
        self.keys: list[str] = []
        self.team = Team([])
        self.figures: Figures = {}

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with registered_definition(self.definition), register_handlers():
            self._start_matches()
            if not self.has_workers:
                yield
                return
            with workers(QUEUE, self.size.processes) as self.team:
                self._send_together(self.size.processes * 20)
                self._wait()
                yield

    def check(self) -> None:
        checks.check_moved(self.definition.name, SOURCE, self.sent, self.matches)
        checks.check_carried_out(self.definition.name, self.commands * self.sent)
        checks.check_invariants()

    def _start_matches(self) -> None:
        self.sent = 0
        self.keys = [uuid4().hex for _ in range(self.matches)]
        self.waiting = [
            start_process(self.definition, Served(key)).process_id for key in self.keys
        ]
        drain(QUEUE, alone=True)

    def _send(self, number: int) -> None:
        """Send so many events, as the game does."""
        for left in range(number, 0, -self.batch):
            if self.batch == 1:
                self._send_one()
            else:
                self._send_together(min(self.batch, left))

    def _send_together(self, number: int) -> None:
        send_events(self._envelope() for _ in range(number))

    def _send_one(self) -> int:
        sent = self._envelope()
        return send_event(
            sent.event,
            id=sent.id,
            source=SOURCE,
            process_id=sent.process_id,
            correlation_key=sent.correlation_key,
        ).number

    def _envelope(self) -> Envelope:
        match = self.sent % self.matches
        self.sent += 1
        sent = Envelope(Returned(), id=uuid4().hex, source=SOURCE)
        if self.by_key:
            return replace(sent, correlation_key=self.keys[match])
        return replace(sent, process_id=self.waiting[match])

    def _events(self) -> Any:
        return InboxEvent.objects.filter(source=SOURCE)

    def _issued(self) -> Any:
        return IssuedCommand.objects.filter(instance__name=self.definition.name)

    def _wait(self) -> None:
        self.wait(lambda: not self._is_any_left(), "the handling of all events")

    def _is_any_left(self) -> bool:
        left = self._events().filter(handled_at=None).exists()
        return bool(left or self._issued().filter(finished_at=None).exists())

    def _seconds_since(self, begun: Any) -> float:
        ends = [clock.last_commit(self._events(), "handled_at")]
        if self.commands:
            ends.append(clock.last_commit(self._issued(), "finished_at"))
        return float((max(ends) - begun).total_seconds())


class Receiving(EventGame):
    """One sender sends events while no worker handles them."""

    has_workers = False

    def prepare(self) -> None:
        """Do nothing: `run` sends the events."""

    def run(self) -> Figures:
        begun = time.perf_counter()
        self._send(self.size.count)
        return {"per_second": self.size.count / (time.perf_counter() - begun)}

    def check(self) -> None:
        checks.check_received(SOURCE, self.sent)


class Handling(EventGame):
    """Workers handle stored events, all released at once."""

    def prepare(self) -> None:
        with hold_back(self.definition):
            self._send_together(self.size.count)

    def run(self) -> Figures:
        before, begun = self.team.used(), database_now()
        release(self.size.processes)
        self._wait()
        used = self.team.figures(before, self.size.count)
        return {"per_second": self.size.count / self._seconds_since(begun), **used}


class AtOnce(EventGame):
    """One sender sends while the workers handle: first as fast as it can, then at LOAD of that rate."""

    LOAD = 0.8
    TOGETHER_SECONDS = 0.02
    """The sender then sends the events of so many seconds together, if it sends several together at all."""

    def prepare(self) -> None:
        """Do nothing: `run` sends the events."""

    def run(self) -> Figures:
        before, begun = self.team.used(), database_now()
        self._send(self.size.count)
        self._wait()
        used = self.team.figures(before, self.size.count)
        rate = self.size.count / self._seconds_since(begun)
        return {"per_second": rate, **used, **self._paced(rate * self.LOAD)}

    def _paced(self, rate: float) -> Figures:
        """Return the milliseconds from receipt to commit at that rate."""
        last = self._events().latest("pk").pk
        together = min(self.batch, max(1, round(rate * self.TOGETHER_SECONDS)))
        begun = time.perf_counter()
        for sent in range(0, self.size.count // 2, together):
            self._send(together)
            early = begun + (sent + together) / rate - time.perf_counter()
            time.sleep(max(early, 0))
        self._wait()
        rows = self._events().filter(pk__gt=last)
        at = clock.commit_time(rows, "handled_at")
        taken = [
            (ended - received).total_seconds() * 1000
            for received, ended in rows.values_list("received_at", at)
        ]
        return {
            "p50_ms": statistics.median(taken),
            "p99_ms": statistics.quantiles(taken, n=100)[98],
        }


class OneEvent(EventGame):
    """One event at a time on idle workers."""

    def prepare(self) -> None:
        """Do nothing: `run` sends the events."""

    def run(self) -> Figures:
        return idle_figures(self.size.count, self._one)

    def _one(self) -> tuple[float, float]:
        row = self._events().filter(pk=self._send_one())
        called = time.time()
        handled = row.filter(handled_at__isnull=False)
        self.wait(handled.exists, "the handling of an event", LOOK_SECONDS)
        if clock.has_commit_timestamps():
            return called, clock.last_commit(row, "handled_at").timestamp()
        return called, time.time()
