"""Work of one definition that falls due all at once, beside chains of another that start one after the other."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from bench import checks, clock
from bench.chain import LENGTH, Chain, pass_on
from bench.game import Figures, Game, Size
from bench.measurement import Measurement, Ratio
from bench.run import QUEUE, registered_definition, remove
from bench.workers import Team, workers
from orchestrator import Retry
from orchestrator.definition import (
    Event,
    ProcessManager,
    StepContext,
    Workflow,
    after,
    during,
    sleep,
    step,
    then,
    when,
)
from orchestrator.engine.processes.starts import start_process
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.queue import wake_queue

A_SECOND = 20
"""How many chains start in a second."""
SECONDS = 10
"""For how many seconds they start where nothing else is due."""
NIGHT = timedelta(hours=8)


class Sleeps(Workflow):
    """Sleeps, and then takes a step."""

    name = "bench-sleeps"
    queue = QUEUE
    flow = (then(sleep(NIGHT, "night"), step(pass_on, "wake_up")),)


def try_again(context: StepContext) -> None:
    """Fail once.

    Raises:
        Retry: at the first attempt.
    """
    if context.attempt == 1:
        raise Retry(NIGHT)


class Retries(Workflow):
    """Takes a step that is tried twice."""

    name = "bench-retries"
    queue = QUEUE
    flow = (step(try_again, "try_again"),)


class Opened(Event):
    """The shop opens."""

    shop: str


class Hours(StrEnum):
    CLOSED = "Closed"
    OPEN = "Open"
    OVER = "Over"


@dataclass(frozen=True)
class Shop:
    shop: str


class Deadlines(ProcessManager):
    """Waits for its deadline."""

    name = "bench-deadlines"
    queue = QUEUE
    correlation = "shop"
    Step, Data = Hours, Shop
    transitions = (
        during(Hours.CLOSED, when(Opened).go_to(Hours.OPEN)),
        during(Hours.OPEN, after(NIGHT).go_to(Hours.OVER)),
    )


BURSTS = (Sleeps, Retries, Deadlines)
ALONE = f"{A_SECOND} chains a second, alone"


class Chains(Game):
    """Chains that start one after the other, for a while."""

    name = ALONE
    unit = "chain"

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self.team = Team([])
        self.started: dict[UUID, float] = {}

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with (
            registered_definition(Chain),
            workers(QUEUE, self.size.processes) as self.team,
        ):
            start_process(Chain)
            self._wait(Chain)
            remove(Chain)
            self.started.clear()
            yield

    def prepare(self) -> None:
        """Do nothing: `run` starts the chains."""

    def run(self) -> Figures:
        self._start_until(lambda begun: time.monotonic() - begun > SECONDS)
        return self._chains_figures()

    def check(self) -> None:
        checks.check_completed(
            Chain.name, len(self.started), LENGTH * len(self.started)
        )

    def _start_until(self, over: Callable[[float], bool]) -> None:
        begun = time.monotonic()
        for number in itertools.count(1):
            if over(begun):
                return
            called = time.time()
            self.started[start_process(Chain).process_id] = called
            time.sleep(max(begun + number / A_SECOND - time.monotonic(), 0))

    def _chains_figures(self) -> Figures:
        self._wait(Chain)
        rows = ProcessInstance.objects.filter(name=Chain.name)
        ended = rows.annotate(end=clock.commit_time(rows, "finished_at"))
        times = [
            (end.timestamp() - self.started[pk]) * 1000
            for pk, end in ended.values_list("pk", "end")
        ]
        return {
            "per_second": A_SECOND,
            "p50_ms": statistics.median(times),
            "p95_ms": statistics.quantiles(times, n=20)[18],
        }

    def _wait(self, definition: type[Workflow | ProcessManager]) -> None:
        rows = ProcessInstance.objects.filter(name=definition.name)
        self.wait(lambda: not rows.live().exists(), "the end of all processes")


class Burst(Chains):
    """`count` processes of one definition, due at one moment, with chains beside them or without.

    Args:
        size: `count` processes.
        definition: of these processes.
        beside: whether chains start until all have ended.
    """

    unit = "visit"

    def __init__(self, size: Size, definition: Any, *, beside: bool) -> None:
        super().__init__(size)
        self.definition = definition
        self.beside = beside
        kind = definition.name.removeprefix("bench-")
        self.name = f"{size.count:,} {kind}, {'beside chains' if beside else 'alone'}"

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with registered_definition(self.definition), super().at_hand():
            yield

    def prepare(self) -> None:
        for number in range(self.size.count):
            given = [Opened(f"shop {number}")] * (self.definition is Deadlines)
            start_process(self.definition, *given)
        later = self._due().filter(wake_at__gt=database_now() + NIGHT / 2)
        self.wait(lambda: later.count() == self.size.count, "the rest of all")

    def run(self) -> Figures:
        before = self.team.used()
        self._due().update(wake_at=database_now())
        begun = database_now()
        wake_queue(QUEUE)
        rows = ProcessInstance.objects.filter(name=self.definition.name)
        if self.beside:
            self._start_until(lambda _: not rows.live().exists())
        self._wait(self.definition)
        seconds = (clock.last_commit(rows, "finished_at") - begun).total_seconds()
        chains = self._chains_figures() if self.beside else {}
        used = self.team.figures(before, self.size.count)
        return {
            **chains,
            "per_second": self.size.count / seconds,
            "burst_ms": seconds * 1000,
            **used,
        }

    def check(self) -> None:
        checks.check_ended(self.definition.name, self.size.count)
        if self.beside:
            super().check()

    def _due(self) -> Any:
        return StepRun.objects.filter(
            definition=self.definition.name, wake_at__isnull=False
        )


def measurement(size: Size) -> Measurement:
    """Return the chains alone, and each burst alone and beside chains."""
    pairs = [
        (Burst(size, one, beside=False), Burst(size, one, beside=True))
        for one in BURSTS
    ]
    games = [Chains(size), *itertools.chain.from_iterable(pairs)]
    both = [beside.name for _, beside in pairs]
    return Measurement(
        "bursts",
        games,
        [
            Ratio("p95 of chains alone", "p95_ms", both, ALONE),
            *(
                Ratio("time of the burst alone", "burst_ms", [beside.name], alone.name)
                for alone, beside in pairs
            ),
        ],
        f"A chain has {LENGTH} steps, and {A_SECOND} start in a second until the burst is over. Its time is from the "
        "call that starts it to the commit of its last step.",
    )
