"""Graphs that look alike whatever their input is; what their steps do, and how, depends on it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import StepContext, Workflow, ask, step, then
from orchestrator.definition.workflow.rows import FlowRow

done: list[str] = []
"""What was done with which file, in this order."""


@dataclass(frozen=True)
class File:
    name: str
    action: str = "copy"
    retries: int = 0
    more: int = 0


class Go(StrEnum):
    ON = "on"


def copy(name: str) -> str:
    done.append(f"copy {name}")
    return "copied"


def delete(name: str) -> str:
    done.append(f"delete {name}")
    return "deleted"


def fail(name: str, context: StepContext) -> str:
    done.append(f"attempt {context.attempt} at {name}")
    raise ConnectionError(name)


def nothing() -> None:
    return None


@dataclass(frozen=True)
class Shelf:
    name: str
    labels: list[str]
    boxes: tuple[File, ...] = ()


def relabel(name: str, labels: list[str], input: Shelf) -> int:
    """Changes what it was given; returns how many labels that were."""
    found = len(labels) + len(input.labels)
    labels.append(name)
    input.labels.append(name)
    return found


class Relabelling(Workflow):
    """Several steps are given the same list."""

    Input = Shelf

    @staticmethod
    def flow(input: Shelf) -> list[FlowRow]:
        return [then(*(step(relabel, f"r{n}") for n in range(len(input.boxes))))]


ACTIONS: dict[str, Callable[..., str]] = {"copy": copy, "delete": delete, "fail": fail}


class Housekeeping(Workflow):
    """Something is done with a file, as soon as somebody says so."""

    Input = File

    @staticmethod
    def flow(input: File) -> list[FlowRow]:
        act = step(
            ACTIONS[input.action], "act", retries=input.retries, backoff=0.01, gives=""
        )
        return [
            then(
                ask("ready", Go),
                act,
                *(step(nothing, f"n{n}") for n in range(input.more)),
                ask("again", Go),
                step(ACTIONS[input.action], "act_again", retries=input.retries),
            )
        ]
