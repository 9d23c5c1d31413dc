"""The stored graphs, read and made once: that of a large workflow is some megabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache

from orchestrator import registry
from orchestrator.collecting import gathered
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import Definition

KEPT = 100

LOOKED_AT = 20
"""Definitions in which a name is looked for."""


@dataclass(frozen=True)
class KnownGraph:
    """A stored graph with what is looked up in it, each made when it is first wanted."""

    graph: Graph

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.graph.nodes}

    @cached_property
    def labels(self) -> Mapping[str, str]:
        return {node.id: node.label for node in self.graph.nodes}

    @cached_property
    def leaving(self) -> Mapping[str, list[Edge]]:
        return gathered((edge.source, edge) for edge in self.graph.edges)

    @cached_property
    def deadlines(self) -> Mapping[str, Edge]:
        return {edge.id: edge for edge in self.graph.edges if edge.kind == "deadline"}

    @cached_property
    def catching(self) -> frozenset[str]:
        return frozenset(one.source for one in self.graph.edges if one.kind == "error")


@lru_cache(KEPT)
def _known(pk: int, fingerprint: str) -> KnownGraph:
    stored = Definition.objects.values_list("graph", flat=True).get(pk=pk)
    return KnownGraph(Graph.from_json(stored))


def known_graph(definition: Definition) -> KnownGraph:
    """What is looked up in the graph of a definition's row, which need not have it loaded."""
    return _known(definition.pk, definition.fingerprint)


def graph_of(definition: Definition) -> Graph:
    """The graph of a definition's row, which need not have it loaded."""
    return known_graph(definition).graph


def labels_of(definition: Definition) -> Mapping[str, str]:
    """The steps of a definition as people read them."""
    return known_graph(definition).labels


def nodes_of(definition: Definition) -> Mapping[str, Node]:
    """The steps of a definition by their names."""
    return known_graph(definition).nodes


def step_of(name: str, step: str) -> str:
    """A step as people read it, by the newest definitions of that name, or of any; as it is where none has it."""
    known = (labels for labels in _newest(name) if step in labels)
    return next((labels[step] for labels in known), step)


def named_step(name: str, text: str) -> str:
    """The step that a text names: by its own name, or as people read it."""
    for labels in _newest(name):
        if text in labels:
            return text
        for step, label in labels.items():
            if label.casefold() == text.casefold():
                return step
    return text


def _newest(name: str) -> Iterator[Mapping[str, str]]:
    """The steps of the newest definitions, of that name or of any."""
    rows = Definition.objects.defer("graph").order_by("-pk")
    for definition in (rows.filter(name=name) if name else rows)[:LOOKED_AT]:
        yield labels_of(definition)


def start_of(graph: Graph) -> str:
    """The step in which instances of a process manager start; "" for a workflow."""
    return next((node.id for node in graph.nodes if node.kind == "start"), "")


def running_plan(definition: Definition) -> Plan | None:
    """The compiled workflow, if the running code still has it as it was stored; None for one made from its input."""
    try:
        found = registry.definition(definition.name, definition.version)
    except UnknownDefinition:
        return None
    return found.static if issubclass(found, Workflow) else None


def vertex_of(definition: Definition, step: str) -> Vertex | None:
    """A step of the compiled workflow, if the running code still has it."""
    plan = running_plan(definition)
    return plan.vertices.get(step) if plan else None


def attempts_of(definition: Definition) -> Callable[[str], int]:
    """How often each step of a definition is tried in all; 0 where the running code does not say."""
    plan = running_plan(definition)

    def attempts(step: str) -> int:
        known = plan.vertices.get(step) if plan else None
        return known.step.policy.attempts() if known else 0

    return attempts


def running_timers(definition: Definition, step: str) -> list[tuple[str, timedelta]]:
    """The deadlines of a process manager's step in the running code, shortest first: their edges, and how long each is.

    None of them where the running code does not have the step.
    """
    try:
        found = registry.definition(definition.name, definition.version)
    except UnknownDefinition:
        return []
    if not issubclass(found, ProcessManager) or step not in {*map(str, found.Step)}:
        return []
    named = found.Step(step)
    rows = zip(found.deadlines(named), found.timers(named), strict=True)
    return [(row.edge, delay) for row, delay in rows]


def choices_of(definition: Definition, name: str, node: Node | None) -> tuple[str, ...]:
    """The choices of a step: of the running code, else as the stored graph says them."""
    known = vertex_of(definition, name)
    if known is not None and known.step.choices is not None:
        return tuple(choice.value for choice in known.step.choices)
    said = node.detail.partition(", at most ")[0] if node else ""
    return tuple(said.split(" or ")) if said else ()
