"""The public comparison of workflow engines: one chain whose steps compute a naive Fibonacci number each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import steps_told
from bench.game import Figures, Size
from bench.peer_game import shape
from bench.run import QUEUE
from bench.steps_told import LOG, chain_figures, step_times
from bench.workflow_game import WorkflowGame
from orchestrator.definition import Workflow, step, then
from orchestrator.definition.workflow.rows import FlowRow

CHAINS = ((40, 10), (10, 33))
"""The steps of a chain, and the number that each step computes."""


@dataclass(frozen=True)
class Numbers:
    length: int
    number: int


def compute(number: int) -> None:
    """Compute the number, as one step."""
    steps_told.step(2, number)


class Fibonacci(Workflow):
    """A sequence of such steps."""

    name = "bench-fibonacci"
    queue = QUEUE
    Input = Numbers

    @staticmethod
    def flow(input: Numbers) -> Iterator[FlowRow]:
        yield then(*(step(compute, f"step_{n}") for n in range(input.length)))


class FibonacciGame(WorkflowGame):
    """One chain, measured by what its steps write down as it is in every other system."""

    def __init__(self, size: Size, length: int, number: int) -> None:
        given: Any = Numbers(length, number)
        name, one = shape(length, number), replace(size, count=1)
        warm = Numbers(length, 1)
        super().__init__(one, name, Fibonacci, length, given, warm)
        self.log = Path()

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            self.log = Path(folder) / "told"
            os.environ[LOG] = str(self.log)  # which the workers inherit
            with super().at_hand():
                self.log.unlink()
                yield

    def run(self) -> Figures:
        figures = super().run()
        return {**figures, **chain_figures(step_times(self.log))}
