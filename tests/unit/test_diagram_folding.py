"""Large workflows are drawn too: what repeats is one part, what does not is shown by levels, and no page waits."""

import itertools
import random
import time
from collections.abc import Callable
from threading import Thread

import pytest

from monitoring.diagrams import cache
from monitoring.diagrams.cache import drawing_of
from monitoring.diagrams.folding import fold, group_by_level
from monitoring.diagrams.sketch import best_sketch, level_sketch
from orchestrator.definition.graph import Edge, Graph, Node
from tests.services.cases import cases
from tests.services.patience import SHARED

Pairs = list[tuple[str, str]]
SOON = 0.3
"""Seconds in which a page must have something to show."""


def workflow(pairs: Pairs, **kinds: str) -> Graph:
    """A workflow of plain edges between these steps; some steps of other kinds."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    nodes = tuple(
        Node(name, name, kinds.get(name, "step"), entry=name == names[0])  # type: ignore[arg-type]
        for name in names
    )
    edges = (Edge(f"e{i}", *pair, "flow") for i, pair in enumerate(pairs))
    return Graph(f"large-{len(nodes)}", 1, "workflow", nodes, tuple(edges))


def chain(length: int) -> Pairs:
    return [(f"c{i}", f"c{i + 1}") for i in range(length - 1)]


def alike_branches(branches: int, length: int) -> Pairs:
    pairs = []
    for b in range(branches):
        names = ["begin", *(f"b{b}_{i}" for i in range(length)), "finish"]
        pairs += list(itertools.pairwise(names))
    return pairs


def layers(count: int, width: int) -> Pairs:
    dice = random.Random(1)
    return [
        (f"s{layer - 1}_{source}", f"s{layer}_{target}")
        for layer in range(1, count)
        for target in range(width)
        for source in dice.sample(range(width), 2)
    ]


@cases("pairs, steps", (chain(70), 70), (alike_branches(40, 5), 200))
def test_steps_in_a_row_and_branches_fold_into_one(pairs: Pairs, steps: int) -> None:
    groups = fold(workflow(pairs))

    assert list(map(len, groups.values())) == [steps]


def test_steps_side_by_side_are_one_part() -> None:
    groups = fold(workflow(alike_branches(40, 1)))

    assert {name: len(some) for name, some in groups.items()} == {"siblings:b0_0": 40}


def test_steps_of_a_kind_of_their_own_stay_visible() -> None:
    groups = fold(workflow(chain(70), c35="ask"))

    assert sorted(len(some) for some in groups.values()) == [34, 35]
    assert all("c35" not in some for some in groups.values())


def test_levels_hold_every_step_once_in_order() -> None:
    graph = workflow(layers(100, 20))

    groups = group_by_level(graph)

    held = [name for some in groups.values() for name in some]
    assert sorted(held) == sorted(node.id for node in graph.nodes)
    assert len(groups) <= 12
    assert next(iter(groups)) == "levels:1-9"


def test_a_small_workflow_is_not_folded() -> None:
    assert not best_sketch(workflow(chain(30))).folded


def test_every_edge_of_a_folded_workflow_is_inside_a_part_or_on_a_line() -> None:
    graph = workflow(alike_branches(40, 5))

    sketch = best_sketch(graph)

    drawn = {edge for line in sketch.lines for edge in line.edges}
    members = {n: part.id for part in sketch.steps() for n in part.members}
    inside = {e.id for e in graph.edges if members[e.source] == members[e.target]}
    assert {edge.id for edge in graph.edges} <= drawn | inside


def test_lines_between_levels_join_neighbours_only() -> None:
    sketch = level_sketch(workflow(layers(100, 20)))

    order = [part.id for part in sketch.parts]
    between = [line for line in sketch.lines if "levels" in line.source + line.target]
    for line in between:
        assert order.index(line.target) == order.index(line.source) + 1


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What would be done in the background."""
    jobs: list[Callable[[], None]] = []

    class Later(Thread):
        def start(self) -> None:
            jobs.append(self.run)

    monkeypatch.setattr(cache, "Thread", Later)
    return jobs


def test_levels_are_shown_until_it_is_laid_out(later: list[Callable[[], None]]) -> None:
    graph = workflow(layers(10, 20))

    first = drawing_of(graph, "layers-10-20")
    again = drawing_of(graph, "layers-10-20")
    assert first is again
    assert first.pending
    assert len(later) == 1
    later[0]()

    laid_out = drawing_of(graph, "layers-10-20")
    assert not laid_out.pending
    assert not laid_out.levels
    assert len(list(laid_out.sketch.steps())) == len(graph.nodes)


def test_a_layout_that_takes_too_long_leaves_the_levels(
    later: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(dot: str) -> str:
        raise TimeoutError

    monkeypatch.setattr(cache, "lay_out_large", never)
    graph = workflow(layers(11, 20))
    drawing_of(graph, "layers-11-20")

    later[0]()

    drawing = drawing_of(graph, "layers-11-20")
    assert drawing.levels
    assert not drawing.pending


@pytest.mark.parametrize(
    ("pairs", "drawn"),
    [
        (chain(10_000), 1),
        (alike_branches(100, 20), 3),
        (layers(100, 20), 12),
        (layers(100, 100), 12),
    ],
    ids=["10,000 in a row", "2,000 in branches", "2,000 in layers", "10,000 in layers"],
)
def test_no_page_waits_for_a_large_workflow(
    pairs: Pairs, drawn: int, later: list[Callable[[], None]]
) -> None:
    graph = workflow(pairs)
    key = f"{graph.name}-{drawn}"
    began = time.thread_time()

    drawing_of(graph, key)

    assert time.thread_time() - began < SOON * SHARED
    for job in later:
        job()
    drawing = drawing_of(graph, key)
    assert not drawing.pending
    assert len(list(drawing.sketch.steps())) == drawn
    assert "data-node" in drawing.svg()
