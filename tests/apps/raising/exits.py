"""Definitions and handlers that leave by what ends programs, at each place where the engine calls a function."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    after,
    case,
    during,
    park,
    route,
    sleep,
    step,
    wait,
    when,
)
from orchestrator.definition.workflow.rows import then

leaving: list[Callable[[], object]] = []
"""What the functions do instead of going on."""


def leave(*given: Any) -> bool:
    """Leave, if this is the place for it."""
    for one in leaving:
        one()
    return True


class Opened(Event):
    number: int


class Rung(Event):
    number: int


class Shut(Event):
    number: int


@dataclass(frozen=True)
class Unread:
    """A value that leaves when it is read."""

    number: int

    def __post_init__(self) -> None:
        leave()


class Sealed(Event):
    value: Unread


class Knock(Event):
    number: int


class Asked(Event):
    number: int


class Back(Event):
    number: int


class Note(Command):
    number: int


class Inform(Command):
    number: int


class Guarding(ProcessManager):
    """A predicate leaves, or the handler of a command inside the transaction or after it, at an event or deadline."""

    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"
        LATE = "Late"
        CLOSED = "Closed"

    @dataclass(frozen=True)
    class Data:
        number: int

    transitions = (
        during(Step.NEW, when(Opened).go_to(Step.OPEN)),
        during(
            Step.OPEN,
            when(Rung).issue(Note).go_to(Step.CLOSED),
            when(Shut, leave).go_to(Step.CLOSED),
            park(Shut),
            when(Asked).issue(Inform).go_to(Step.CLOSED),
            when(Sealed).go_to(Step.CLOSED),
            after(timedelta(days=30)).issue(Note).go_to(Step.LATE),
        ),
        during(Step.LATE, when(Back).go_to(Step.OPEN), park(Shut)),
    )


@dataclass(frozen=True)
class Number:
    number: int = 1


def first(number: int) -> int:
    return number


def second() -> None:
    """Is reached when nothing leaves."""


def last() -> bool:
    return leave()


def hear(rung: Rung) -> int:
    return rung.number


def listen(event: Rung) -> bool:
    return leave()


class Deciding(Workflow):
    Input = Number
    flow = (
        step(first, retries=1),
        route(first, case(leave, to=second), otherwise=step(second, "other")),
    )


class Listening(Workflow):
    Input = Number
    flow = (then(wait(Rung, "bell", listen, gives="rung"), hear),)


class Resting(Workflow):
    """Leaves when its graph is made anew after a sleep."""

    Input = Number

    @staticmethod
    def flow(input: Number) -> list[object]:
        leave()
        return [then(sleep(timedelta(hours=1), "rest"), second)]


class Calling(Workflow):
    """Its last function leaves."""

    Input = Number
    flow = (then(first, step(last, retries=1)),)


DEFINITIONS = (Guarding, Deciding, Listening, Resting, Calling)
