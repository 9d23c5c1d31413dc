"""Graphs of 10,000 steps: compiled, checked and drawn quickly."""

import time
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from orchestrator.definition import case, fork, join, needs, step, then
from orchestrator.definition.workflow.steps import Step
from tests.services.cases import cases
from tests.unit.workflows import Process, define, large, look, work

COUNT = 10_000
PATIENCE = 30.0
"""Seconds of a processor. It takes about one; a slow one is given more, yet far less than n² would take."""


def named(prefix: str, count: int) -> list[Step]:
    return [step(work, f"{prefix}{number}") for number in range(count)]


def layered() -> list[Any]:
    """100 layers of 100 steps, each of which needs three of the layer before."""
    dice = Random(1)
    layers = [named(f"s{depth}_", 100) for depth in range(COUNT // 100)]
    return [
        needs(one, dice.sample(before, 3))
        for before, layer in pairwise(layers)
        for one in layer
    ]


def chain() -> list[Any]:
    return [then(*named("s", COUNT))]


def fan(**policy: Any) -> list[Any]:
    first, last, *middle = named("s", COUNT)
    return [fork(first, into=middle), join(*middle, into=last, **policy)]


def racing() -> list[Any]:
    return fan(wait_for="any", rest="cancel")


def conditional() -> list[Any]:
    """One optional branch after the other."""
    rows: list[Any] = []
    ahead = step(look, "s0")
    for number in range(1, COUNT, 3):
        one, other = named(f"s{number}_", 2)
        following = step(look, f"s{number}")
        rows += [
            fork(ahead, into=[case(large, to=one), case(large, to=other)]),
            join(one, other, into=following),
        ]
        ahead = following
    return rows


@cases("rows", layered, chain, fan, racing, conditional)
def test_a_large_graph_is_checked_in_time(rows: Callable[[], list[Any]]) -> None:
    begun = time.process_time()

    flow = define(*rows())
    flow.graph()

    assert time.process_time() - begun < PATIENCE
    assert len(flow.plan().vertices) > COUNT - 100


def test_a_step_costs_the_same_in_a_large_graph_as_in_a_small_one() -> None:
    process = Process(*fan())
    begun = time.process_time()

    process.done("s0")
    for number in range(2, 1000):
        process.done(f"s{number}")

    assert time.process_time() - begun < PATIENCE


def test_a_race_among_thousands_gives_all_the_others_up() -> None:
    process = Process(*racing())
    process.done("s0")

    found = process.settle("s7", 1)

    assert found.entered == [("s1", 1)]
    assert len(found.given_up) == COUNT - 2
