"""Many branches at once, and graphs with many edges; their steps do nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.definition import Workflow, fork, join, needs, start, step
from orchestrator.definition.workflow.rows import FlowRow


@dataclass(frozen=True)
class Breadth:
    branches: int


def nothing() -> None:
    """Does nothing."""


def first() -> None:
    """Does nothing."""


def last() -> None:
    """Does nothing."""


class Broad(Workflow):
    """Starts with all its branches, which come together."""

    name = "wide-broad"
    Input = Breadth

    @staticmethod
    def flow(input: Breadth) -> Iterator[FlowRow]:
        steps = [step(nothing, f"b{number}") for number in range(input.branches)]
        yield start(*steps)
        yield join(*steps, into=last)


class Fan(Workflow):
    """One step opens all branches, which come together."""

    name = "wide-fan"
    Input = Breadth

    @staticmethod
    def flow(input: Breadth) -> Iterator[FlowRow]:
        steps = [step(nothing, f"b{number}") for number in range(input.branches)]
        yield fork(first, into=steps)
        yield join(*steps, into=last)


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


WORKFLOWS = (Broad, Fan, Dense)
