"""Which values the data can have in which step: a fixed point over the graph's edges.

It separates gaps from impossible cases and, on a live diagram, the transitions that can still happen from the others.
Each field is followed by itself (Kildall 1973, A unified approach to global program optimization).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.collecting import group_by_key
from orchestrator.definition.graph import Edge, Graph

PossibleValues = dict[str, frozenset[Any]]
"""Field -> its possible values. A field without an entry can have any."""


def flow(
    graph: Graph, start: str, known: PossibleValues
) -> tuple[dict[str, PossibleValues], set[str]]:
    """Follows the edges from a step, with the known values of the data.

    Returns:
        For each node that can be reached the possible values there, and the ids of the edges that can be taken.
    """
    outgoing = group_by_key((edge.source, edge) for edge in graph.edges)
    values, taken, waiting = {start: dict(known)}, set[str](), deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in outgoing.get(node, []):
            passed = step(edge, values[node])
            if passed is None:
                continue
            taken.add(edge.id)
            before = values.get(edge.target)
            merged = passed if before is None else merge(before, passed)
            if merged != before:
                values[edge.target] = merged
                waiting.append(edge.target)
    return values, taken


def step(edge: Edge, values: PossibleValues) -> PossibleValues | None:
    """The values after an edge, or None if its guard cannot hold."""
    if not can_hold(edge.accepts, values):
        return None
    after = dict(values)
    for name in edge.accepts.keys() & after.keys():
        after[name] &= values_in(edge.accepts[name])
    for name, assigned in edge.assigns.items():
        if assigned is None:
            after.pop(name, None)
        else:
            after[name] = values_in(assigned)
    return after


def can_hold(accepts: Mapping[str, Iterable[Any]], values: PossibleValues) -> bool:
    """Whether the data can have what a guard accepts."""
    return all(
        name not in values or not values[name].isdisjoint(values_in(accepted))
        for name, accepted in accepts.items()
    )


def merge(one: PossibleValues, other: PossibleValues) -> PossibleValues:
    """Joins two possibilities. A field that is unknown in one of them is unknown."""
    return {name: one[name] | other[name] for name in one.keys() & other.keys()}


def reachable(
    graph: Graph, step: str, data: Mapping[str, Any] | None = None
) -> tuple[set[str], set[str]]:
    """The ids of nodes and edges that can still happen from a step, given the data as stored."""
    given = (data or {}).items()
    known = {name: values_in([value]) for name, value in given}
    values, edges = flow(graph, step, known)
    return set(values), edges


def values_in(stored: Iterable[Any]) -> frozenset[Any]:
    """Stored values in a hashable form; lists and dicts as text."""
    return frozenset(map(_hashable, stored))


def _hashable(value: object) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
