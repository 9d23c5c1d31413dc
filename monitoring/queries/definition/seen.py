"""What the newest processes of a stored definition have visited, against what it declares.

Told are declared steps that none of them has visited, and what they did that is not declared: steps, and ways between
steps. The more steps a graph has, the fewer processes are looked at; how many is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from uuid import UUID

from monitoring.queries.among import among
from monitoring.queries.counts import grouped
from orchestrator.definition.graph import Graph
from orchestrator.models import (
    Checkpoint,
    Definition,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)

LOOKED_AT = 1_000
"""The newest processes of that name among which those of one definition are looked for."""

PROCESSES = 200
"""Processes that are looked at, at most."""

VISITS = 4_000
"""Visits that they may have together, as far as the graph tells; twice as many are looked at."""

Visit = tuple[UUID, int, str]
"""A process, the key of the visit, its step."""

Way = tuple[str, str]
"""From one step to another."""


@dataclass(frozen=True)
class Seen:
    """What was seen in a number of processes.

    Args:
        processes: how many were looked at.
        whole: whether these are all there are.
        visited: the steps that were visited; None where there were too many visits to say.
        steps: those of them that are not declared.
        ways: between two steps, and not declared, with how often each was seen.
        edges: transitions that are not declared, by the names under which they were stored, with how often.
    """

    processes: int
    whole: bool
    visited: frozenset[str] | None
    steps: tuple[str, ...]
    ways: tuple[tuple[Way, int], ...]
    edges: tuple[tuple[str, int], ...]

    def never(self, step: str) -> bool:
        """Whether none of them has visited a step; not where none was looked at."""
        return bool(
            self.processes and self.visited is not None and step not in self.visited
        )

    @property
    def undeclared(self) -> bool:
        return bool(self.steps or self.ways or self.edges)


def seen(definition: Definition, graph: Graph) -> Seen:
    """Looks at the newest processes of a definition's row, whose graph it is."""
    keys, whole = _newest(definition, len(graph.nodes))
    visits = StepRun.objects.filter(among("instance_id", keys), item=None)
    visits = visits.exclude(status=StepStatus.NOT_TAKEN)
    visits = visits.exclude(kind__in=[StepKind.JOIN, StepKind.UNDO])
    # In no order: what is sorted is read to its end, and a process may have very many.
    visits = visits.order_by()
    ways: Iterable[tuple[Way, int]] = ()
    edges: Iterable[tuple[str, int]] = ()
    if definition.kind == Definition.Kind.PROCESS_MANAGER:
        rows = visits.values_list("instance_id", "pk", "node")
        found = sorted(rows[: 2 * VISITS])
        number, visited = len(found), frozenset(node for _, _, node in found)
        if number < 2 * VISITS:
            ways = _ways(found, graph)
    else:
        counted = grouped(visits, "node", cap=2 * VISITS)
        number = sum(one for _, one in counted)
        visited = frozenset(node for node, _ in counted)
        edges = _edges(keys, graph)
    known = {node.id for node in graph.nodes}
    return Seen(
        len(keys),
        whole,
        visited if number < 2 * VISITS else None,
        tuple(sorted(visited - known)),
        tuple(sorted(ways)),
        tuple(sorted(edges)),
    )


def _newest(definition: Definition, steps: int) -> tuple[list[UUID], bool]:
    """The newest processes of the definition's row, and whether there are no others."""
    most = min(max(VISITS // max(steps, 1), 1), PROCESSES)
    name = definition.name
    # A range of one, or PostgreSQL would look for them among all, newest first, and not by the index.
    rows = ProcessInstance.objects.filter(name__range=(name, name))
    newest = rows.order_by("name", "-pk").values_list("pk", "definition_id")
    some = list(newest[:LOOKED_AT])
    mine = [pk for pk, of in some if of == definition.pk]
    return mine[:most], len(some) < LOOKED_AT and len(mine) <= most


def _ways(found: list[Visit], graph: Graph) -> Iterator[tuple[Way, int]]:
    """The ways from one visit of a process manager to its next that no transition declares."""
    declared = {(edge.source, edge.target) for edge in graph.edges}
    taken = Counter[Way]()
    for _, visits in groupby(found, key=itemgetter(0)):
        taken.update(pairwise(node for _, _, node in visits))
    return ((way, number) for way, number in taken.items() if way not in declared)


def _edges(keys: list[UUID], graph: Graph) -> Iterator[tuple[str, int]]:
    """The transitions of a workflow that its graph does not have."""
    declared = {edge.id for edge in graph.edges}
    rows = Checkpoint.objects.filter(among("instance_id", keys)).exclude(edge="")
    taken = Counter[str]()
    for text, number in grouped(rows.order_by(), "edge", cap=VISITS):
        for edge in text.split(","):
            taken[edge] += number
    return ((edge, number) for edge, number in taken.items() if edge not in declared)
