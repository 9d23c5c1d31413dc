"""Many branches at once, and graphs with many edges; their steps do nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.definition import (
    Workflow,
    fork,
    join,
    needs,
    route,
    start,
    step,
    then,
)
from orchestrator.definition.workflow.rows import FlowRow
from tests.services.declared import declared


@dataclass(frozen=True)
class Breadth:
    branches: int


def nothing() -> None:
    """Does nothing."""


def first() -> None:
    """Does nothing."""


def last() -> None:
    """Does nothing."""


def branches(input: Breadth) -> list[Any]:
    return [step(nothing, f"b{number}") for number in range(input.branches)]


class Broad(Workflow):
    """Starts with all its branches, which come together."""

    name = "wide-broad"
    Input = Breadth

    @staticmethod
    def flow(input: Breadth) -> Iterator[FlowRow]:
        steps = branches(input)
        yield start(*steps)
        yield join(*steps, into=last)


class Fan(Workflow):
    """One step opens all branches, which come together."""

    name = "wide-fan"
    Input = Breadth

    @staticmethod
    def flow(input: Breadth) -> Iterator[FlowRow]:
        steps = branches(input)
        yield fork(first, into=steps)
        yield join(*steps, into=last)


class Short(Workflow):
    """Ends with its first step."""

    name = "wide-short"

    flow = (start(first),)


class Narrow(Workflow):
    """One step after the other."""

    name = "wide-narrow"

    flow = (then(first, nothing, last),)


@dataclass(frozen=True)
class Mesh:
    width: int
    layers: int


class Dense(Workflow):
    """Layers in which each step needs every step of the layer before."""

    name = "wide-dense"
    Input = Mesh

    @staticmethod
    def flow(input: Mesh) -> Iterator[FlowRow]:
        before: list[Any] = []
        for layer in range(input.layers):
            now = [step(nothing, f"s{layer}_{n}") for n in range(input.width)]
            if layer == 0:
                yield start(*now)
            for one in now if layer else ():
                yield needs(one, before)
            before = now


class Tree(Workflow):
    """Steps beside each other, each of which opens as many branches that end by themselves."""

    name = "wide-tree"
    Input = Breadth

    @staticmethod
    def flow(input: Breadth) -> Iterator[FlowRow]:
        for one in range(input.branches):
            stem = step(nothing, f"t{one}")
            yield start(stem)
            yield fork(
                stem, into=[step(nothing, f"t{one}_{n}") for n in range(input.branches)]
            )


class Way(StrEnum):
    ON = "on"


done: list[str] = []
"""Which steps have run, in this order."""

ACTIONS: dict[str, Callable[[], object]] = {}
"""What a step does beside, by its name."""


@dataclass(frozen=True)
class Names:
    names: tuple[str, ...]


def act(name: str) -> str:
    done.append(name)
    ACTIONS.get(name, nothing)()
    return name


def choose(name: str) -> Way:
    done.append(name)
    return Way.ON


class Beside(Workflow):
    """Named steps beside each other, which come together; after one whose name begins with "choose" a route decides."""

    name = "wide-beside"
    Input = Names

    @staticmethod
    def flow(input: Names) -> Iterator[FlowRow]:
        ends = []
        for name in input.names:
            chooses = name.startswith("choose")
            one = step(
                choose if chooses else act, name, args={"name": name}, backoff=0.01
            )
            yield start(one)
            if chooses:
                chosen = step(nothing, f"{name}_on")
                yield route(one, on="", to={Way.ON: chosen})
            ends.append(chosen if chooses else one)
        yield join(*ends, into=last)


WORKFLOWS = declared(globals())
