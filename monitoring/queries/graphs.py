"""The stored graphs, read and made once: that of a large workflow is some megabytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import lru_cache

from orchestrator import registry
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.definition.workflow.plan import Plan
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import Definition

KEPT = 100

LOOKED_AT = 20
"""Definitions in which a name is looked for."""


def graph_of(definition: Definition) -> Graph:
    """The graph of a definition's row, which need not have it loaded."""
    return _graph(definition.pk, definition.fingerprint)


def labels_of(definition: Definition) -> Mapping[str, str]:
    """The steps of a definition as people read them."""
    return _labels(definition.pk, definition.fingerprint)


def nodes_of(definition: Definition) -> Mapping[str, Node]:
    """The steps of a definition by their names."""
    return _nodes(definition.pk, definition.fingerprint)


def leaving_of(definition: Definition, step: str) -> list[Edge]:
    """The edges that leave a step."""
    return _leaving(definition.pk, definition.fingerprint).get(step, [])


def deadlines_of(definition: Definition) -> Mapping[str, Edge]:
    """The transitions of a definition that deadlines make, by their ids."""
    return _deadlines(definition.pk, definition.fingerprint)


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


def catching_of(definition: Definition) -> frozenset[str]:
    """The steps whose failures lead somewhere."""
    return _catching(definition.pk, definition.fingerprint)


def running_plan(definition: Definition) -> Plan | None:
    """The compiled workflow, if the running code still has it as it was stored; None for one made from its input."""
    try:
        found = registry.definition(definition.name, definition.version)
    except UnknownDefinition:
        return None
    return found.static if issubclass(found, Workflow) else None


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
    plan = running_plan(definition)
    known = plan.vertices.get(name) if plan else None
    if known is not None and known.step.choices is not None:
        return tuple(choice.value for choice in known.step.choices)
    said = node.detail.partition(", at most ")[0] if node else ""
    return tuple(said.split(" or ")) if said else ()


@lru_cache(KEPT)
def _graph(pk: int, fingerprint: str) -> Graph:
    stored = Definition.objects.values_list("graph", flat=True).get(pk=pk)
    return Graph.from_json(stored)


@lru_cache(KEPT)
def _deadlines(pk: int, fingerprint: str) -> Mapping[str, Edge]:
    edges = _graph(pk, fingerprint).edges
    return {edge.id: edge for edge in edges if edge.kind == "deadline"}


@lru_cache(KEPT)
def _labels(pk: int, fingerprint: str) -> Mapping[str, str]:
    return {node.id: node.label for node in _graph(pk, fingerprint).nodes}


@lru_cache(KEPT)
def _nodes(pk: int, fingerprint: str) -> Mapping[str, Node]:
    return {node.id: node for node in _graph(pk, fingerprint).nodes}


@lru_cache(KEPT)
def _leaving(pk: int, fingerprint: str) -> Mapping[str, list[Edge]]:
    found: dict[str, list[Edge]] = {}
    for edge in _graph(pk, fingerprint).edges:
        found.setdefault(edge.source, []).append(edge)
    return found


@lru_cache(KEPT)
def _catching(pk: int, fingerprint: str) -> frozenset[str]:
    graph = _graph(pk, fingerprint)
    return frozenset(edge.source for edge in graph.edges if edge.kind == "error")
