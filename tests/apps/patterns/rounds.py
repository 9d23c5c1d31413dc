"""Loops whose steps are more than functions."""

from typing import Any

from orchestrator.definition import Workflow, each, repeat, start, step
from tests.apps.patterns.patterns import Numbers


def shorten(numbers: list[int], add_up: list[int] | None) -> list[int]:
    """Gives the whole list in the first round, and then two numbers less each time."""
    return numbers if add_up is None else [number + 10 for number in add_up[2:]]


def raised(item: int) -> int:
    return item + 100


def add_up(raised: list[int]) -> list[int]:
    return [number - 100 for number in raised]


def is_short(numbers: list[int]) -> bool:
    return len(numbers) <= 1


def is_empty(numbers: list[int]) -> bool:
    return not numbers


def keep(raised: list[int], add_up: list[int]) -> list[list[int]]:
    return [raised, add_up]


def _rows(raised: Any = raised, until: Any = is_short, then: Any = keep) -> Any:
    return (
        start(shorten),
        each(shorten, over="", do=raised, into=add_up),
        repeat(shorten, raised, add_up, until=until, at_most=4, then=then),
    )


class Shrinking(Workflow):
    """A map that has fewer elements in each round of a loop."""

    Input = Numbers
    flow = _rows()


class ShrinkingElsewhere(Workflow):
    """The same, with elements on another queue, so that each step is taken up by a worker anew."""

    Input = Numbers
    flow = _rows(step(raised, queue="press"))


class Vanishing(Workflow):
    """The same until none is left."""

    Input = Numbers
    flow = _rows(until=is_empty)


class Lingering(Workflow):
    """The loop, and then a step on a queue that nobody serves at first."""

    Input = Numbers
    flow = _rows(then=step(keep, queue="press"))
