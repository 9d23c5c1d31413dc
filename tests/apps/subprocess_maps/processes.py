"""A workflow with a sub-process for each element of a list."""

import time
from dataclasses import dataclass

from orchestrator.definition import Workflow, each, run, then

HOUR = 0.02
"""Seconds that each step takes."""


@dataclass(frozen=True)
class Order:
    """How many ships sail."""

    ships: int


@dataclass(frozen=True)
class Ship:
    """The number of one ship."""

    number: int


def muster(ships: int) -> list[int]:
    return list(range(ships))


def load(number: int) -> int:
    time.sleep(HOUR)
    return number * 10


def sail(load: int) -> int:
    time.sleep(HOUR)
    return load + 1


def report(passage: list[int]) -> list[int]:
    return passage


class Passage(Workflow):
    """What one ship does."""

    Input = Ship
    flow = (then(load, sail),)


class Fleet(Workflow):
    """A passage for each ship, four at once."""

    Input = Order
    flow = (
        each(muster, over="", do=run(Passage), into=report, item="number", window=4),
    )
