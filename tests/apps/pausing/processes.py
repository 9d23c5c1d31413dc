"""Workflows whose steps do what a test wants while they run, as when it happens while a worker is at them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import Group

from orchestrator.definition import Workflow, ask, each, run, start, then, undo

during: dict[str, Callable[[], object]] = {}
"""What else happens while a step runs."""
done: list[str] = []
"""The steps that have run, in order."""


def do(name: str) -> None:
    done.append(name)
    if name in during:
        during[name]()


@dataclass(frozen=True)
class Size:
    """The input: of how many elements."""

    size: int = 1


class Answer(StrEnum):
    YES = "yes"
    NO = "no"


def begin(size: int) -> int:
    do("begin")
    return size


def end(begin: int) -> int:
    do("end")
    return begin


def take_back(begin: int) -> None:
    do("take_back")


class Line(Workflow):
    """One step after another; the first can be undone."""

    Input = Size
    flow = (then(begin, end), undo(begin, by=take_back))


def numbers(size: int) -> list[int]:
    do("numbers")
    return list(range(size))


def square(number: int) -> int:
    do(f"square {number}")
    return number * number


def total(square: list[int]) -> int:
    do("total")
    return sum(square)


class Squares(Workflow):
    """An element for each number."""

    Input = Size
    flow = (each(numbers, over="", do=square, into=total, item="number"),)


class Narrow(Workflow):
    """The same, two at once."""

    Input = Size
    flow = (each(numbers, over="", do=square, into=total, item="number", window=2),)


class Bottom(Workflow):
    """Asks; what it began can be taken back."""

    Input = Size
    flow = (then(begin, ask("sure", Answer)), undo(begin, by=take_back))


bottom = run(Bottom, "bottom")


class Middle(Workflow):
    """Has the bottom as its part."""

    Input = Size
    flow = (start(bottom),)


middle = run(Middle, "middle")


class Top(Workflow):
    """Has the middle as its part, and runs one step before."""

    Input = Size
    flow = (start(begin), then(begin, middle))


HOLD = "hold the step"
"""The name of the group of users that keeps a step running, in whatever worker."""


def hold(size: int) -> int:
    while Group.objects.filter(name=HOLD).exists():
        time.sleep(0.05)
    return size


class Held(Workflow):
    """Runs as long as the test wants."""

    Input = Size
    flow = (start(hold),)


WORKFLOWS = (Line, Squares, Narrow, Bottom, Middle, Top, Held)
