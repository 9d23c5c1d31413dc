"""Reach, order and dominators in any directed graph, given as the nodes that follow each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Following = Mapping[str, Sequence[str]]
"""Node -> the ends of the ways on from it; a node to which several ways lead is named once for each."""

ROOT = ""
"""What dominates the nodes that begin."""


def closure(start: Iterable[str], following: Mapping[str, Iterable[str]]) -> set[str]:
    """All nodes that can be reached from these, themselves included."""
    found = set(start)
    waiting = list(found)
    while waiting:
        new = set(following.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def ordered(following: Following) -> list[str]:
    """The nodes, each after all that lead to it, after Kahn (1962); those of a cycle, and what follows, are missing."""
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


def cycle(leading: Following, order: Iterable[str]) -> list[str]:
    """The nodes of one cycle, from one of them back to it; none when the order is complete.

    Whoever is missing in the order has a way in from somebody who is missing too: going back along these must come
    to where it has been.

    Args:
        leading: node -> the nodes that lead to it.
        order: the nodes that `ordered` has found.
    """
    placed = set(order)
    at = next((name for name in leading if name not in placed), "")
    walked: dict[str, None] = {}
    while at and at not in walked:
        walked[at] = None
        at = next(name for name in leading[at] if name not in placed)
    names = list(walked)
    return [at, *names[names.index(at) :][::-1]] if names else []


def dominators(leading: Following, order: Iterable[str]) -> dict[str, str]:
    """The last node that every way to each node passes through; after Cooper, Harvey and Kennedy (2001).

    Args:
        leading: node -> the nodes that lead to it.
        order: all nodes, each after all that lead to it.
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
