"""Graphs made from an input of 200 KB, beside the chain of 10: what a step costs must not grow with its process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.chain import LENGTH, chain
from bench.game import Size
from bench.measurement import Measurement, Ratio
from bench.run import QUEUE
from bench.workflow_game import WorkflowGame
from orchestrator.definition import Workflow, needs, start, step
from orchestrator.definition.workflow.rows import FlowRow

WIDTH = 20
INPUT_BYTES = 200_000
NOTE = "what somebody has written about the order"
LEAST_STEPS = 1000
"""A game runs as many processes of a smaller graph as have so many steps together."""

SHAPES = {50: 120, 1000: 4000, 7000: 28_000}
"""The edges of the layered graphs by their steps."""
DENSE = {1000: 17_000}


@dataclass(frozen=True)
class GraphData:
    """A graph as data: for each step the steps of the layer before that it needs, and the rest of an order."""

    tenant: str
    needed: list[list[int]]
    notes: list[str]


def work(tenant: str) -> int:
    """Reads one small field of the input."""
    return len(tenant)


class Layered(Workflow):
    """Layers of steps; each needs some of the layer before."""

    name = "bench-graph"
    queue = QUEUE
    Input = GraphData

    @staticmethod
    def flow(input: GraphData) -> Iterator[FlowRow]:
        steps: list[Any] = [step(work, f"s{n}") for n in range(len(input.needed))]
        yield start(*(steps[n] for n, found in enumerate(input.needed) if not found))
        for n, found in enumerate(input.needed):
            if found:
                yield needs(steps[n], [steps[other] for other in found])


def make_graph(steps: int, edges: int) -> GraphData:
    """Return a graph of layers of WIDTH, with so many edges and INPUT_BYTES of JSON."""
    base, extra = divmod(edges, max(steps - WIDTH, 1))
    needed: list[list[int]] = [[] for _ in range(min(WIDTH, steps))]
    for n in range(WIDTH, steps):
        first, many = (n // WIDTH - 1) * WIDTH, base + (n - WIDTH < extra)
        needed.append(sorted(first + (n + k) % WIDTH for k in range(many)))
    graph = GraphData("acme", needed, [])
    room = INPUT_BYTES - len(json.dumps(needed, separators=(",", ":")))
    return replace(graph, notes=[NOTE] * max(room // (len(NOTE) + 3), 0))


def most_edges(steps: int) -> int:
    """Return the most edges of so many steps: each needs at most all steps of the layer before."""
    return max(steps - WIDTH, 0) * WIDTH


def graph(size: Size, steps: int, edges: int) -> WorkflowGame:
    """Return a game of processes of one such graph, run one after the other or side by side."""
    copies = replace(size, count=max(1, LEAST_STEPS // steps) * size.count)
    name = f"graph of {steps:,} steps, {edges:,} edges"
    given, warm = make_graph(steps, edges), make_graph(WIDTH, 0)
    return WorkflowGame(copies, name, Layered, steps, given, warm)


def measurement(size: Size, steps: Sequence[int] = tuple(SHAPES)) -> Measurement:
    """Return the chain and the graphs of so many steps."""
    shapes = [(n, SHAPES.get(n, min(4 * n, most_edges(n)))) for n in steps]
    shapes += [(n, DENSE[n]) for n in steps if n in DENSE]
    base = chain(replace(size, count=100 * size.count))
    graphs = [graph(size, n, edges) for n, edges in shapes]
    names = [one.name for one in graphs]
    return Measurement(
        "graph",
        [base, *graphs],
        [Ratio("of the chain", "per_second", names, base.name)],
        f"Each graph is made from an input of {INPUT_BYTES // 1000} KB, of which each step reads one field. "
        f"A graph with fewer than {LEAST_STEPS:,} steps is run repeatedly until that number of steps is reached. "
        f"The chain has {LENGTH} steps and no input.",
    )
