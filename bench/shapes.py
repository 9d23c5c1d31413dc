"""Workflows that do nothing but go on, for measuring."""

from __future__ import annotations

from dataclasses import dataclass

from bench.run import QUEUE
from orchestrator.definition import Workflow, each

WIDTH = 50


def numbers(width: int) -> list[int]:
    """The elements of the fan-out."""
    return list(range(width))


def look(item: int) -> int:
    """One element."""
    return item


def collect(look: list[int]) -> int:
    """The join."""
    return len(look)


class FanOut(Workflow):
    """A list, one step for each element, and a join."""

    name = "bench-fanout"
    queue = QUEUE

    @dataclass(frozen=True)
    class Input:
        """How many elements."""

        width: int = WIDTH

    flow = (each(numbers, over="", do=look, into=collect),)
