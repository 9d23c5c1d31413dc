"""An order in which every step comes after all that lead to it: it exists only when nothing leads back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.definition.workflow.plan import Link, Plan


def ordered(plan: Plan) -> list[str]:
    """The vertices in topological order, after Kahn (1962); those of a cycle, and what follows them, are missing."""
    open_ways = {name: vertex.ways_in for name, vertex in plan.vertices.items()}
    found = [name for name, count in open_ways.items() if count == 0]
    for name in found:
        for link in plan[name].links:
            open_ways[link.target] -= 1
            if open_ways[link.target] == 0:
                found.append(link.target)
    return found


def cycle(plan: Plan, order: list[str]) -> list[Link]:
    """The links of one cycle, in their order; none when the order is complete.

    Whoever is missing in the order has a way in from somebody who is missing too: going back along these must come
    to where it has been.
    """
    placed = set(order)
    missing = [name for name in plan.vertices if name not in placed]
    if not missing:
        return []
    back = _ways_back(plan, placed)
    walked: dict[str, int] = {}
    links: list[Link] = []
    at = missing[0]
    while at not in walked:
        walked[at] = len(links)
        links.append(back[at])
        at = back[at].source
    return links[walked[at] :][::-1]


def _ways_back(plan: Plan, placed: set[str]) -> Mapping[str, Link]:
    return {
        link.target: link
        for link in reversed(plan.links)
        if link.kind != "repeat" and link.source not in placed
    }


def named(links: list[Link]) -> str:
    """A cycle as people read it: "a -> b -> a"."""
    return " -> ".join([links[0].source, *(link.target for link in links)])
