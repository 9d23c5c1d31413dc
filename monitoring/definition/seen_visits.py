"""Visits of the newest processes of a stored definition, compared with its declaration.

The results are declared steps without visits, and undeclared steps and ways between steps. For large graphs fewer
processes are looked at; the page shows their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from uuid import UUID

from django.db.models import QuerySet

from monitoring.queries.any_of import any_of
from monitoring.queries.counts import count_by
from orchestrator.definition.graph import Graph
from orchestrator.models import (
    Checkpoint,
    Definition,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.models.process_instance import NEWEST_FIRST

LOOKED_AT = 1_000
"""The newest processes of a name among which those of one definition are found."""

PROCESSES = 200
"""The maximum number of processes to look at."""

VISITS = 4_000
"""The expected number of their visits, by the size of the graph; at most twice as many are read."""

PastVisit = tuple[UUID, int, str]
"""A process, the key of the visit, its step."""

Move = tuple[str, str]
"""From one step to another."""


@dataclass(frozen=True)
class SeenVisits:
    """The visits of some processes, compared with the declaration.

    Args:
        processes: the number of processes.
        whole: whether these are all processes.
        visited: the visited steps; None if there were too many visits to read.
        steps: the undeclared steps.
        ways: the undeclared ways between two steps, with their numbers.
        edges: the undeclared transitions by their stored names, with their numbers.
    """

    processes: int
    whole: bool
    visited: frozenset[str] | None
    steps: tuple[str, ...]
    ways: tuple[tuple[Move, int], ...]
    edges: tuple[tuple[str, int], ...]

    def never(self, step: str) -> bool:
        """Whether none of the processes has visited a step; False without processes."""
        return bool(
            self.processes and self.visited is not None and step not in self.visited
        )

    @property
    def undeclared(self) -> bool:
        return bool(self.steps or self.ways or self.edges)


def seen_visits(definition: Definition, graph: Graph) -> SeenVisits:
    """Read the visits of the newest processes of a definition's row with this graph."""
    keys, whole = _newest(definition, len(graph.nodes))
    visits = _visits_of(keys)
    ways: Iterable[tuple[Move, int]] = ()
    edges: Iterable[tuple[str, int]] = ()
    if definition.kind == Definition.Kind.PROCESS_MANAGER:
        rows = visits.values_list("instance_id", "pk", "node")
        found = sorted(rows[: 2 * VISITS])
        number, visited = len(found), frozenset(node for _, _, node in found)
        if number < 2 * VISITS:
            ways = _undeclared_ways(found, graph)
    else:
        counted = count_by(visits, "node", cap=2 * VISITS)
        number = sum(one for _, one in counted)
        visited = frozenset(node for node, _ in counted)
        edges = _undeclared_edges(keys, graph)
    return SeenVisits(
        len(keys),
        whole,
        visited if number < 2 * VISITS else None,
        tuple(sorted(visited - {node.id for node in graph.nodes})),
        tuple(sorted(ways)),
        tuple(sorted(edges)),
    )


def _visits_of(keys: list[UUID]) -> QuerySet[StepRun]:
    visits = StepRun.objects.filter(any_of("instance_id", keys), item=None)
    visits = visits.exclude(status=StepStatus.NOT_TAKEN)
    # Without an order: a sort would read all visits, and a process may have very many.
    return visits.exclude(kind__in=[StepKind.JOIN, StepKind.UNDO]).order_by()


def _newest(definition: Definition, steps: int) -> tuple[list[UUID], bool]:
    """Return the newest processes of the definition's row, and whether these are all."""
    most = min(max(VISITS // max(steps, 1), 1), PROCESSES)
    name = definition.name
    # A range of one value: PostgreSQL would otherwise scan all processes, newest first.
    rows = ProcessInstance.objects.filter(name__range=(name, name))
    newest = rows.order_by("name", *NEWEST_FIRST).values_list("pk", "definition_id")
    some = list(newest[:LOOKED_AT])
    mine = [pk for pk, of in some if of == definition.pk]
    return mine[:most], len(some) < LOOKED_AT and len(mine) <= most


def _undeclared_ways(
    found: list[PastVisit], graph: Graph
) -> Iterator[tuple[Move, int]]:
    """Yield the undeclared ways from a visit of a process manager to its next visit."""
    declared = {(edge.source, edge.target) for edge in graph.edges}
    taken = Counter[Move]()
    for _, visits in groupby(found, key=itemgetter(0)):
        taken.update(pairwise(node for _, _, node in visits))
    return ((way, number) for way, number in taken.items() if way not in declared)


def _undeclared_edges(keys: list[UUID], graph: Graph) -> Iterator[tuple[str, int]]:
    """Yield the transitions that a workflow's graph lacks."""
    declared = {edge.id for edge in graph.edges}
    rows = Checkpoint.objects.filter(any_of("instance_id", keys)).exclude(edge="")
    taken = Counter[str]()
    for text, number in count_by(rows.order_by(), "edge", cap=VISITS):
        for edge in text.split(","):
            taken[edge] += number
    return ((edge, number) for edge, number in taken.items() if edge not in declared)
