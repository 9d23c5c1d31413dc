"""What a join gives up when it no longer waits: the steps between it and the last step that all its branches share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.definition.workflow.order import ordered

if TYPE_CHECKING:
    from orchestrator.definition.workflow.plan import Plan

ROOT = ""
"""What dominates the steps that begin."""


def dominators(plan: Plan) -> Mapping[str, str]:
    """The last step that every way to each vertex passes through; after Cooper, Harvey and Kennedy (2001)."""
    above: dict[str, str] = {ROOT: ROOT}
    depth = {ROOT: 0}
    for name in ordered(plan):
        found = ""
        for index, link in enumerate(plan.incoming[name]):
            one = link.source
            while index and one != found:
                if depth[one] >= depth[found]:
                    one = above[one]
                else:
                    found = above[found]
            found = one
        above[name], depth[name] = found, depth[found] + 1
    return above


def region(plan: Plan, join: str) -> frozenset[str]:
    """The vertices of its branches whose ways all lead to this join, unless they fail."""
    found: set[str] = set()
    open_ways: dict[str, int] = {}
    shared = plan.dominators[join]
    waiting = [link.source for link in plan.incoming[join] if not link.exceptional]
    while waiting:
        name = waiting.pop()
        left = open_ways.get(name, len(plan[name].regular)) - 1
        open_ways[name] = left
        if left == 0 and name != shared:
            found.add(name)
            links = plan.incoming[name]
            waiting += [link.source for link in links if not link.exceptional]
    return frozenset(found)


def cancelling(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """The joins that give a vertex up when they start, by the vertex."""
    found: dict[str, tuple[str, ...]] = {}
    for vertex in plan.vertices.values():
        if vertex.join is not None and vertex.join.rest == "cancel":
            for name in plan.region(vertex.name):
                found[name] = (*found.get(name, ()), vertex.name)
    return found
