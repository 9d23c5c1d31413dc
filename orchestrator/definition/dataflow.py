"""The possible values of the data in each step: a fixed point over the graph's edges.

The coverage check uses it to tell gaps from impossible cases, and a live diagram to show the transitions that can
still happen. It follows each field by itself (Kildall 1973, A unified approach to global program optimization).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.containers import group_by_key
from orchestrator.definition.graph import Edge, Graph

PossibleValues = dict[str, frozenset[Any]]
"""Field -> its possible values. A field without an entry can have any."""


def follow_edges(
    graph: Graph, start: str, known: PossibleValues
) -> tuple[dict[str, PossibleValues], set[str]]:
    """Follow the edges from a step, with the known values of the data.

    Returns:
        The possible values in each reachable node, and the ids of the edges that can be taken.
    """
    outgoing = group_by_key((edge.source, edge) for edge in graph.edges)
    values, taken, waiting = {start: dict(known)}, set[str](), deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in outgoing.get(node, []):
            passed = follow_edge(edge, values[node])
            if passed is None:
                continue
            taken.add(edge.id)
            before = values.get(edge.target)
            merged = passed if before is None else merge(before, passed)
            if merged != before:
                values[edge.target] = merged
                waiting.append(edge.target)
    return values, taken


def follow_edge(edge: Edge, values: PossibleValues) -> PossibleValues | None:
    """Return the values after an edge, or None if its guard cannot hold."""
    if not can_hold(edge.accepts, values):
        return None
    after = dict(values)
    for name in edge.accepts.keys() & after.keys():
        after[name] &= as_hashable(edge.accepts[name])
    for name, assigned in edge.assigns.items():
        if assigned is None:
            after.pop(name, None)
        else:
            after[name] = as_hashable(assigned)
    return after


def can_hold(accepts: Mapping[str, Iterable[Any]], values: PossibleValues) -> bool:
    """Return whether the data can have a value that the guard accepts."""
    return all(
        name not in values or not values[name].isdisjoint(as_hashable(accepted))
        for name, accepted in accepts.items()
    )


def merge(one: PossibleValues, other: PossibleValues) -> PossibleValues:
    """Join the possible values of two paths. A field that is unknown in one of them is unknown."""
    return {name: one[name] | other[name] for name in one.keys() & other.keys()}


def reachable(
    graph: Graph, step: str, data: Mapping[str, Any] | None = None
) -> tuple[set[str], set[str]]:
    """Return the ids of the nodes and edges that a process can still reach from a step, with its stored data."""
    given = (data or {}).items()
    known = {name: as_hashable([value]) for name, value in given}
    values, edges = follow_edges(graph, step, known)
    return set(values), edges


def as_hashable(stored: Iterable[Any]) -> frozenset[Any]:
    """Return stored values in a hashable form: lists and dicts as text."""
    return frozenset(map(_hashable, stored))


def _hashable(value: object) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
