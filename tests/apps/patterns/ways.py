"""Workflows in which the same place can be reached in several ways."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from orchestrator.definition import (
    Workflow,
    ask,
    fork,
    join,
    repeat,
    route,
    start,
    step,
)
from tests.apps.patterns import patterns as p


class Way(StrEnum):
    LEFT = "left"
    RIGHT = "right"


def go_left() -> str:
    return "left"


def go_right() -> str:
    return "right"


class Crossing(Workflow):
    """A person says where it goes on, or nobody does; another branch keeps it going."""

    Input = p.Number
    crossing = ask("crossing", choices=Way, deadline=timedelta(days=1), late=go_left)
    flow = (
        start(crossing, p.slow),
        route(crossing, on="", to={Way.LEFT: go_left, Way.RIGHT: go_right}),
    )


def begin(number: int) -> int:
    return number


def branch() -> None:
    return None


def close() -> str:
    return "closed"


BRANCHES = [step(branch, f"branch_{number}") for number in range(14)]


class Wide(Workflow):
    """More branches than any short text could name."""

    Input = p.Number
    flow = (start(begin), fork(begin, into=BRANCHES), join(*BRANCHES, into=close))


@dataclass(frozen=True)
class Wanted:
    branches: list[int]
    too: bool


def choose(branches: list[int], too: bool) -> Wanted:
    return Wanted(branches, too)


def choose_too(branches: list[int], too: bool) -> Wanted:
    return Wanted(branches, too)


class Choosing(Workflow):
    """Many branches on a condition, the last of which may also be entered from elsewhere."""

    Input = Wanted
    flow = (
        start(choose, choose_too),
        fork(choose, on="branches", into=dict(enumerate(BRANCHES)), otherwise=close),
        route(choose_too, on="too", to={True: BRANCHES[-1], False: go_right}),
    )


def grow(grow: int | None) -> int:
    return (grow or 0) + 1


class Grown(Workflow):
    """A loop of one step, whose bound is another way out."""

    Input = p.Number
    flow = (
        start(grow),
        repeat(grow, until=p.enough, at_most=2, then=go_left, otherwise=go_right),
    )


MANY = [step(branch, f"of_many_{number}") for number in range(70)]


class Broad(Workflow):
    """So many branches that their steps are drawn as one."""

    Input = p.Number
    flow = (start(begin), fork(begin, into=MANY), join(*MANY, into=close))
