"""Reachability, order, cycles and dominators of directed graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Adjacency = Mapping[str, Sequence[str]]
"""Node -> the targets of its edges, once for each edge."""

ROOT = ""
"""The dominator of nodes without incoming edges."""


def closure(start: Iterable[str], following: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all nodes that can be reached from the starting nodes, including these."""
    found = set(start)
    waiting = list(found)
    while waiting:
        new = set(following.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def topological_order(following: Adjacency) -> list[str]:
    """Return the nodes in topological order, after Kahn (1962), without those of a cycle and their successors."""
    ways_in = dict.fromkeys(following, 0)
    for targets in following.values():
        for target in targets:
            ways_in[target] += 1
    found = [name for name, count in ways_in.items() if count == 0]
    for name in found:
        for target in following[name]:
            ways_in[target] -= 1
            if ways_in[target] == 0:
                found.append(target)
    return found


def find_cycle(leading: Adjacency, order: Iterable[str]) -> list[str]:
    """Return the nodes of one cycle, from one of them back to it; an empty list if the order is complete.

    A node that is missing in the order has a predecessor that is missing too. So a walk back along missing
    predecessors meets a node twice.

    Args:
        leading: node -> its predecessors.
        order: the result of `topological_order`.
    """
    placed = set(order)
    at = next((name for name in leading if name not in placed), "")
    walked: dict[str, None] = {}
    while at and at not in walked:
        walked[at] = None
        at = next(name for name in leading[at] if name not in placed)
    names = list(walked)
    return [at, *names[names.index(at) :][::-1]] if names else []


def dominators(leading: Adjacency, order: Iterable[str]) -> dict[str, str]:
    """Return the immediate dominator of each node, after Cooper, Harvey and Kennedy (2001).

    Args:
        leading: node -> its predecessors.
        order: all nodes, each after its predecessors.
    """
    above: dict[str, str] = {ROOT: ROOT}
    depth = {ROOT: 0}
    for name in order:
        found = ""
        for index, one in enumerate(leading[name]):
            while index and one != found:
                if depth[one] >= depth[found]:
                    one = above[one]
                else:
                    found = above[found]
            found = one
        above[name], depth[name] = found, depth[found] + 1
    return above
