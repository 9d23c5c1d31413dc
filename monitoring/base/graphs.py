"""The graphs of stored definitions, cached, since the graph of a large workflow has some megabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Any

from orchestrator import registry
from orchestrator.containers import group_by_key
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.models import Definition

KEPT = 100

LOOKED_AT = 20
"""The number of newest definitions that are searched for the label of a step."""


@dataclass(frozen=True)
class KnownGraph:
    """A stored graph with indexes, each built at its first use."""

    graph: Graph

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.graph.nodes}

    @cached_property
    def labels(self) -> Mapping[str, str]:
        return {node.id: node.label for node in self.graph.nodes}

    @cached_property
    def leaving(self) -> Mapping[str, list[Edge]]:
        return group_by_key((edge.source, edge) for edge in self.graph.edges)

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
    """Return the indexed graph of a definition's row, which may have its graph deferred."""
    return _known(definition.pk, definition.fingerprint)


def stored_graph(definition: Definition) -> Graph:
    """Return the graph of a definition's row, which may have it deferred."""
    return known_graph(definition).graph


def labels_of(definition: Definition) -> Mapping[str, str]:
    """Return the labels of a definition's steps."""
    return known_graph(definition).labels


def nodes_of(definition: Definition) -> Mapping[str, Node]:
    """Return the steps of a definition by name."""
    return known_graph(definition).nodes


def find_label(name: str, step: str) -> str:
    """Return the label of a step in the newest definitions, of one name or of any; an unknown step is unchanged."""
    known = (labels for labels in _newest(name) if step in labels)
    return next((labels[step] for labels in known), step)


def find_step(name: str, text: str) -> str:
    """Return the name of the step with this name or label; an unknown text is unchanged."""
    for labels in _newest(name):
        if text in labels:
            return text
        for step, label in labels.items():
            if label.casefold() == text.casefold():
                return step
    return text


def _newest(name: str) -> Iterator[Mapping[str, str]]:
    """Yield the labels of the newest definitions, of a name or of any."""
    rows = Definition.objects.defer("graph").order_by("-pk")
    for definition in (rows.filter(name=name) if name else rows)[:LOOKED_AT]:
        yield labels_of(definition)


def first_step(graph: Graph) -> str:
    """Return the first step of a process manager; "" for a workflow."""
    return next((node.id for node in graph.nodes if node.kind == "start"), "")


def running_class(definition: Definition) -> Any:
    """Return the class that the running code has for a version; None without one."""
    return registry.definitions.get((definition.name, definition.version))


def running_plan(definition: Definition) -> Plan | None:
    """Return the compiled workflow of the running code; None without one, or if its input makes the graph."""
    found = running_class(definition)
    return found.static if found and issubclass(found, Workflow) else None


def vertex_of(definition: Definition, step: str) -> Vertex | None:
    """Return a step of the compiled workflow, if the running code has it."""
    plan = running_plan(definition)
    return plan.vertices.get(step) if plan else None


def most_attempts(definition: Definition) -> Callable[[str], int]:
    """Return a function for the maximum attempts of a step; 0 if the running code does not declare them."""
    plan = running_plan(definition)

    def attempts(step: str) -> int:
        known = plan.vertices.get(step) if plan else None
        return known.step.policy.attempts() if known else 0

    return attempts


def running_timers(definition: Definition, step: str) -> list[tuple[str, timedelta]]:
    """Return the deadlines of a process manager's step in the running code, shortest first: edges and lengths.

    The list is empty if the running code lacks the step.
    """
    found = running_class(definition)
    if not found or not issubclass(found, ProcessManager):
        return []
    if step not in {*map(str, found.Step)}:
        return []
    named = found.Step(step)
    rows = zip(found.deadlines(named), found.timers(named), strict=True)
    return [(row.edge, delay) for row, delay in rows]


def choices_of(definition: Definition, name: str) -> tuple[str, ...]:
    """Return the choices of a step: from the running code, else from the stored graph."""
    known = vertex_of(definition, name)
    if known is not None and known.step.choices is not None:
        return tuple(choice.value for choice in known.step.choices)
    node = nodes_of(definition).get(name)
    said = node.detail.partition(", at most ")[0] if node else ""
    return tuple(said.split(" or ")) if said else ()
