"""Workflows for the tests of the language, and a process of a workflow that runs in memory."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import pytest

from orchestrator.definition import Event, Workflow, step
from orchestrator.definition.workflow.advance import (
    Advance,
    Arrivals,
    Ending,
    Settled,
    advance,
    error_link,
    initial_advance,
)
from orchestrator.definition.workflow.plan import Link, Plan
from orchestrator.definition.workflow.steps import Step
from orchestrator.exceptions import InvalidDefinition


class Medium(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"


class Priority(StrEnum):
    LOW = "low"
    URGENT = "urgent"


class Approved(Event):
    by: str


@dataclass(frozen=True)
class Input:
    ticket: str
    count: int = 1


@dataclass(frozen=True)
class Inquiry:
    """What the first step of many of these workflows gives."""

    media: frozenset[Medium] = frozenset()
    priority: Priority = Priority.LOW
    pages: tuple[int, ...] = ()
    size: int = 0


def work() -> int:
    return 1


def look() -> Inquiry:
    return Inquiry()


def large(inquiry: Inquiry) -> bool:
    return inquiry.size > 10


def huge(inquiry: Inquiry) -> bool:
    return inquiry.size > 100


def enough(number: int) -> bool:
    return number >= 3


def steps(names: str) -> list[Step]:
    """Steps that need nothing and give a number."""
    return [step(work, name) for name in names.split()]


def define(*rows: Any, **attributes: Any) -> type[Workflow]:
    """Run the class statement of a workflow with these rows."""
    body = {"__module__": __name__, "Input": Input, "flow": rows, **attributes}
    return type("Flow", (Workflow,), body)


def plan_of(*rows: Any, **attributes: Any) -> Plan:
    return define(*rows, **attributes).plan()


def refusal(*rows: Any, **attributes: Any) -> InvalidDefinition:
    """Return how the class statement was refused."""
    with pytest.raises(InvalidDefinition) as refused:
        define(*rows, **attributes)
    assert refused.value.definition == "Flow"
    return refused.value


class Backwards(frozenset[Any]):
    """A set as another process may have it: in another order."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), reverse=True))


class Process:
    """A process of a workflow: settles visits one after the other, and does what follows as the engine does."""

    def __init__(self, *rows: Any, plan: Plan | None = None) -> None:
        self.plan = plan if plan is not None else plan_of(*rows)
        self.joins: dict[str, Arrivals] = {}
        self.visits: list[tuple[str, int]] = []
        self.not_taken: list[str] = []
        self.cancelled: list[str] = []
        self.history: list[Settled] = []
        self.open: dict[tuple[str, int], None] = {}
        self.latest: dict[str, int] = {}
        self._follow(initial_advance(self.plan))

    def settle(
        self,
        name: str,
        result: Any = None,
        outcome: Ending = "done",
        caught: Link | None = None,
    ) -> Advance:
        """Settle the open visit of a step."""
        visit = (name, self.latest[name])
        settled = Settled(name, visit[1], outcome, result, caught)
        found = advance(self.plan, settled, self.look)
        del self.open[visit]  # it must have been open
        self.history.append(settled)
        self._follow(found)
        return found

    def done(self, *names: str) -> None:
        for name in names:
            self.settle(name, 1)

    def fail(self, name: str, error: BaseException | None = None) -> Advance:
        caught = error_link(self.plan, name, error or ValueError())
        return self.settle(name, outcome="failed", caught=caught)

    def ran(self, happened: str) -> Self:
        """Have steps settled in this order: a gives 1, b:3 gives 3, !c fails, look=11 gives an inquiry of size 11."""
        for name, sign, number in re.findall(r"(!?\w+)([=:]?)(\d*)", happened):
            if name.startswith("!"):
                self.fail(name[1:])
            else:
                given = int(number or 1)
                self.settle(name, Inquiry(size=given) if sign == "=" else given)
        return self

    def look(self, names: Sequence[str]) -> Mapping[str, Arrivals]:
        return {name: self.joins[name] for name in names if name in self.joins}

    def _follow(self, found: Advance) -> None:
        self.joins |= found.joins
        self.not_taken += found.not_taken
        self.visits += found.entered
        self.open |= dict.fromkeys(found.entered)
        self.latest |= dict(found.entered)
        for name in (*found.given_up, *found.caught):
            if (name, self.latest.get(name)) in self.open:
                self.cancelled.append(name)
                self.settle(name, outcome="cancelled")

    @property
    def now(self) -> list[str]:
        """The names of the open steps, in the order in which they were entered."""
        return [name for name, _ in self.open]
