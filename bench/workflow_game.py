"""Games of workflows: processes that are started, held back, and then run by warm workers all at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import checks, clock
from bench.game import Figures, Game, Size
from bench.idle import LOOK_SECONDS, idle_figures
from bench.run import QUEUE, hold_back, registered_definition, release, remove
from bench.workers import Team, workers
from orchestrator.definition import Workflow
from orchestrator.engine.processes.starts import start_process
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import ProcessInstance


class WorkflowGame(Game):
    """`count` processes of one workflow.

    Args:
        size: `count` processes.
        name: its name in the report.
        shape: the workflow.
        visits: how many functions each process calls.
        given: the input.
        warm: the input of the processes that warm the workers; the same when None.
    """

    def __init__(
        self,
        size: Size,
        name: str,
        shape: type[Workflow],
        visits: int,
        given: Any = None,
        warm: Any = None,
    ) -> None:
        super().__init__(size)
        self.name = name
        self.shape = shape
        self.visits = visits
        self.given = given
        self.warm = warm or given
        self.started = 0
        self.team = Team([])
        self.figures: Figures = {}

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with (
            registered_definition(self.shape),
            workers(QUEUE, self.size.processes) as self.team,
        ):
            for _ in range(4 * self.size.processes):
                start_process(self.shape, self.warm)
            self._wait()
            remove(self.shape)
            self.started = 0
            yield

    def prepare(self) -> None:
        begun = time.perf_counter()
        with hold_back(self.shape):
            for _ in range(self.size.count):
                self._start()
        taken = time.perf_counter() - begun
        self.figures = {"start_ms": taken * 1000 / self.size.count}

    def run(self) -> Figures:
        units = self.visits * self.size.count
        before, begun = self.team.used(), database_now()
        release(self.size.processes)
        self._wait()
        used = self.team.figures(before, units)
        ended = clock.last_commit(self._rows(), "finished_at")
        seconds = (ended - begun).total_seconds()
        return {"per_second": units / seconds, **used, **self.figures}

    def check(self) -> None:
        checks.check_completed(
            self.shape.name, self.started, self.visits * self.started
        )

    def _start(self) -> Any:
        self.started += 1
        return start_process(self.shape, self.given)

    def _rows(self) -> Any:
        return ProcessInstance.objects.filter(name=self.shape.name)

    def _wait(self) -> None:
        self.wait(lambda: not self._rows().live().exists(), "the end of all processes")


class OneByOne(WorkflowGame):
    """One process at a time on idle workers."""

    unit = "run"

    def prepare(self) -> None:
        """Do nothing: `run` starts the processes."""

    def run(self) -> Figures:
        return idle_figures(self.size.count, self._one)

    def _one(self) -> tuple[float, float]:
        row = ProcessInstance.objects.filter(pk=self._start().process_id)
        called = time.time()
        ended = row.ended()
        self.wait(ended.exists, "the end of a process", LOOK_SECONDS)
        if clock.has_commit_timestamps():
            return called, clock.last_commit(row, "finished_at").timestamp()
        return called, time.time()
