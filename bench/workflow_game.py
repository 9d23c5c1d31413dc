"""Games of workflows: processes that are started, held back, and run by warm workers all at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench import checks, clock
from bench.game import Figures, Game, Size
from bench.run import QUEUE, held_back, release, remove, running
from bench.workers import Team, workers
from orchestrator.definition import Workflow
from orchestrator.engine.processes import start_process
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import ProcessInstance


class WorkflowGame(Game):
    """Processes of one workflow, with so many calls of functions in all."""

    def __init__(
        self,
        size: Size,
        name: str,
        shape: type[Workflow],
        inputs: Sequence[Any],
        visits: int,
        warm: Any,
    ) -> None:
        super().__init__(size)
        self.name = name
        self.shape = shape
        self.inputs = inputs
        self.visits = visits
        self.warm = warm
        """The input of the processes that warm the workers."""
        self.team = Team([])
        self.figures: Figures = {}

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with running(self.shape), workers(QUEUE, self.size.processes) as self.team:
            for _ in range(4 * self.size.processes):
                start_process(self.shape, self.warm)
            self._wait()
            remove(self.shape)
            yield

    def prepare(self) -> None:
        begun = time.perf_counter()
        with held_back(self.shape):
            for given in self.inputs:
                start_process(self.shape, given)
        seconds = time.perf_counter() - begun
        self.figures = {"start_ms": seconds * 1000 / len(self.inputs)}

    def run(self) -> Figures:
        before, begun = self.team.used(), database_now()
        release(self.size.processes)
        self._wait()
        used = self.team.figures(before, self.visits)
        ended = clock.last_commit(self._rows(), "finished_at")
        seconds = (ended - begun).total_seconds()
        return {"per_second": self.visits / seconds, **used, **self.figures}

    def check(self) -> None:
        checks.completed(self.shape.name, len(self.inputs), self.visits)

    def _rows(self) -> Any:
        return ProcessInstance.objects.filter(name=self.shape.name)

    def _wait(self) -> None:
        self.wait(lambda: not self._rows().live().exists(), "the end of all processes")
