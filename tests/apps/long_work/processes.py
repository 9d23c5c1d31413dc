"""The same long work in a step, in the elements of a map and in a command after the commit."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    during,
    each,
    needs,
    start,
    step,
    when,
)
from orchestrator.definition.workflow.rows import FlowRow
from tests.apps.long_work.ways import spend

AT_ONCE = "at once"


def work(name: str, how: str) -> str:
    """One step."""
    return spend(name, how)


class LongStep(Workflow):
    """One step that takes its time."""

    @dataclass(frozen=True)
    class Input:
        name: str
        how: str = AT_ONCE

    flow = (step(work),)


class LongLayer(Workflow):
    """Quick steps, and then long ones that each need all of these."""

    @dataclass(frozen=True)
    class Input:
        quick: tuple[str, ...]
        long: tuple[str, ...]
        how: str

    @staticmethod
    def flow(input: Input) -> Iterator[FlowRow]:
        quick = [
            step(work, name, args={"name": name, "how": AT_ONCE})
            for name in input.quick
        ]
        yield start(*quick)
        for name in input.long:
            yield needs(step(work, name, args={"name": name}), quick)


def names(ways: dict[str, str]) -> list[list[str]]:
    """The elements of a map: how each spends its time."""
    return [[name, how] for name, how in ways.items()]


def element(item: list[str]) -> str:
    """One element."""
    name, how = item
    return spend(name, how)


def together(element: list[str]) -> int:
    """The join."""
    return len(element)


class LongMap(Workflow):
    """A map whose elements take their time."""

    @dataclass(frozen=True)
    class Input:
        ways: dict[str, str]

    flow = (each(names, over="", do=element, into=together),)


class ErrandWanted(Event):
    name: str
    how: str = AT_ONCE


class RunErrand(Command):
    name: str
    how: str


class Errands(ProcessManager):
    """One command after the commit that takes its time."""

    class Step(StrEnum):
        WANTED = "Wanted"
        SENT = "Sent"

    @dataclass(frozen=True)
    class Data:
        name: str
        how: str

    correlation = "name"

    transitions = (
        during(Step.WANTED, when(ErrandWanted).issue(RunErrand).go_to(Step.SENT)),
    )
