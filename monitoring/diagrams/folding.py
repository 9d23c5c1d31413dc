"""Folding of large workflows: steps in a row become one part, and so do steps side by side.

A graph without repeated shapes is cut into levels: steps with the same distance from the start.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from orchestrator.containers import group_by_key
from orchestrator.definition.graph import Graph, Node

WAYS = ("flow", "case", "default")

Groups = dict[str, tuple[str, ...]]

ENOUGH = 60
"""Parts above which folded parts are folded again."""

LEVELS = 12
"""Parts that a picture by levels has at most."""


def fold(graph: Graph) -> Groups:
    """Return groups of steps in a row and of like siblings, folded until no more can be folded."""
    return _Folding(graph).groups()


def group_by_level(graph: Graph) -> Groups:
    """Return all steps in at most `LEVELS` groups, by their distance from the start."""
    rank = _ranks(graph)
    deepest = max(rank.values(), default=0) + 1
    size = -(-deepest // LEVELS)
    found = group_by_key((rank[node.id] // size, node.id) for node in graph.nodes)
    groups = {}
    for index in sorted(found):
        first, last = index * size + 1, min((index + 1) * size, deepest)
        span = f"{first}" if first == last else f"{first}-{last}"
        groups[f"levels:{span}"] = tuple(found[index])
    return groups


def group_all(graph: Graph) -> Groups:
    """Return all steps as one part, until a better picture is ready."""
    return {"steps:all": tuple(node.id for node in graph.nodes)}


def chain_levels(graph: Graph, groups: Groups) -> Graph:
    """Return the graph with each edge between levels drawn from the one just above: one line between two levels."""
    place = {one: index for index, some in enumerate(groups.values()) for one in some}
    first = [some[0] for some in groups.values()]
    edges = []
    for edge in graph.edges:
        source, target = place[edge.source], place[edge.target]
        if source < target and edge.kind in WAYS:
            near = edge.source if source == target - 1 else first[target - 1]
            edges.append(replace(edge, source=near))
    return replace(graph, edges=tuple(edges))


def _ranks(graph: Graph) -> dict[str, int]:
    """Return the longest way from the start to each step, loops left out."""
    after: dict[str, list[str]] = defaultdict(list)
    missing: dict[str, int] = dict.fromkeys((node.id for node in graph.nodes), 0)
    for edge in graph.edges:
        if edge.kind != "repeat" and edge.source != edge.target:
            after[edge.source].append(edge.target)
            missing[edge.target] += 1
    rank = dict.fromkeys(missing, 0)
    waiting = [name for name, number in missing.items() if not number]
    while waiting:
        name = waiting.pop()
        for other in after[name]:
            rank[other] = max(rank[other], rank[name] + 1)
            missing[other] -= 1
            if not missing[other]:
                waiting.append(other)
    return rank


class _Folding:
    """The graph while it is folded: parts by key, with the parts before and after each."""

    def __init__(self, graph: Graph) -> None:
        self.order = {node.id: index for index, node in enumerate(graph.nodes)}
        self.members = {node.id: [node.id] for node in graph.nodes}
        self.how: dict[str, str] = {}
        self.after: dict[str, set[str]] = defaultdict(set)
        self.before: dict[str, set[str]] = defaultdict(set)
        whole = set(_unfoldable_steps(graph))
        for edge in graph.edges:
            self.after[edge.source].add(edge.target)
            self.before[edge.target].add(edge.source)
        self.freely = False
        self.free = {node.id for node in graph.nodes if node.id not in whole}

    def groups(self) -> Groups:
        while self._rows() or self._siblings():
            pass
        self.freely = len(self.members) > ENOUGH
        while self.freely and (self._rows() or self._siblings()):
            pass
        return {
            f"{self.how[key]}:{key}": tuple(sorted(some, key=self.order.__getitem__))
            for key, some in self.members.items()
            if len(some) > 1
        }

    def _rows(self) -> bool:
        found = False
        for key in sorted(self.members, key=self.order.__getitem__):
            while key in self.members and (other := self._only_next(key)):
                self._merge([key, other], "run")
                found = True
        return found

    def _only_next(self, key: str) -> str:
        """Return the part that follows this one alone and that this one alone leads to."""
        if key not in self.free or len(self.after[key]) != 1:
            return ""
        (other,) = self.after[key]
        alone = self.before[other] == {key} and other in self.free and other != key
        alike = {self.how.get(one, "run") for one in (key, other)} == {"run"}
        return other if alone and (alike or self.freely) else ""

    def _siblings(self) -> bool:
        free = sorted(self.free & self.members.keys(), key=self.order.__getitem__)
        found = group_by_key(
            ((frozenset(self.before[key]), frozenset(self.after[key])), key)
            for key in free
        )
        alike = [keys for keys in found.values() if len(keys) > 1]
        for keys in alike:
            self._merge(keys, "siblings")
        return bool(alike)

    def _merge(self, keys: list[str], how: str) -> None:
        kept, *others = keys
        # A run of runs is a run; anything else that was folded twice is just steps.
        was = {self.how[key] for key in keys if key in self.how}
        self.how[kept] = how if was <= {how} else "steps"
        gone = set(keys)
        after = set().union(*(self.after.pop(key, set()) for key in keys)) - gone
        before = set().union(*(self.before.pop(key, set()) for key in keys)) - gone
        for key in others:
            self.members[kept] += self.members.pop(key)
        for other in after:
            self.before[other] = (self.before[other] - gone) | {kept}
        for other in before:
            self.after[other] = (self.after[other] - gone) | {kept}
        self.after[kept], self.before[kept] = after, before


def _unfoldable_steps(graph: Graph) -> Iterator[str]:
    """Yield the steps that stay as they are: those of a kind of their own, and those with other than plain edges."""
    yield from (node.id for node in graph.nodes if not _is_plain(node))
    for edge in graph.edges:
        if edge.kind != "flow":
            yield edge.source
            if edge.kind != "case":
                yield edge.target


def _is_plain(node: Node) -> bool:
    return node.kind == "step" and not (node.undo or node.join)
