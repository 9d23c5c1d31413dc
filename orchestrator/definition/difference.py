"""Comparison of two graphs of one definition: added, removed and changed steps.

A mapping pairs the steps of both graphs. Without a mapping, steps of the same name are pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.containers import group_by_key
from orchestrator.definition.graph import Graph, Node

Aspect = Literal["name", "kind", "detail", "undo", "ways in", "ways out", "events"]
"""The aspects in which a step may differ."""


@dataclass(frozen=True)
class Difference:
    """The difference between two graphs.

    Args:
        mapped: the pairs: old name -> new name.
        removed: the steps of the old graph without a pair.
        added: the steps of the new graph without a pair.
        changed: the aspects in which the pairs differ, by the old names of the steps.
    """

    mapped: Mapping[str, str]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    changed: Mapping[str, tuple[Aspect, ...]]

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.changed)


def same_names(old: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    """Map each step to the step of the same name, if there is one."""
    known = set(new)
    return {name: name for name in old if name in known}


def difference(
    old: Graph, new: Graph, mapping: Mapping[str, str] | None = None
) -> Difference:
    """Compare two graphs.

    Args:
        old: the old graph.
        new: the new graph.
        mapping: old step -> new step; None pairs steps of the same name. Entries for unknown steps have no effect.
    """
    before = {node.id: node for node in old.nodes}
    after = {node.id: node for node in new.nodes}
    mapping = same_names(before, after) if mapping is None else mapping
    mapped = {a: b for a, b in mapping.items() if a in before and b in after}
    taken = set(mapped.values())
    known_old = _Surroundings(old, mapped)
    known_new = _Surroundings(new, {name: name for name in after})
    changed = {
        name: aspects
        for name, now in mapped.items()
        if (aspects := _changes(known_old, before[name], known_new, after[now]))
    }
    removed = tuple(name for name in before if name not in mapped)
    added = tuple(name for name in after if name not in taken)
    return Difference(mapped, removed, added, changed)


def _changes(
    one: _Surroundings, was: Node, other: _Surroundings, now: Node
) -> tuple[Aspect, ...]:
    """Return the aspects in which a pair of steps differs."""
    before, after = one.aspects(was), other.aspects(now)
    return tuple(name for name in before if before[name] != after[name])


class _Surroundings:
    """The edges around the steps of a graph, with the steps under their new names."""

    def __init__(self, graph: Graph, names: Mapping[str, str]) -> None:
        self._names, self._joins = names, graph.kind == "workflow"
        self._out = group_by_key((edge.source, edge) for edge in graph.edges)
        self._in = group_by_key((edge.target, edge) for edge in graph.edges)
        self._kept = group_by_key((one.step, one) for one in graph.dispositions)

    def _named(self, name: str) -> str:
        return self._names.get(name, f"\0{name}")

    def aspects(self, node: Node) -> dict[Aspect, object]:
        """Return the aspects of a step, by their names."""
        return {
            "name": node.id,
            "kind": node.kind,
            "detail": node.detail,
            "undo": node.undo,
            "ways in": (node.join, node.entry, self._sources(node.id)),
            "ways out": (node.split, self._ways(node.id)),
            "events": self._events(node.id),
        }

    def _sources(self, name: str) -> list[str]:
        """The sources of the edges to a workflow's step. Those of a process manager do not change the step."""
        edges = self._in.get(name, ()) if self._joins else ()
        return sorted(self._named(edge.source) for edge in edges)

    def _ways(self, name: str) -> list[tuple[str, ...]]:
        """The edges from a step, as they are drawn."""
        return sorted(
            (
                self._named(edge.target),
                edge.kind,
                edge.event,
                edge.guard,
                ", ".join(edge.actions),
                "escalates" if edge.escalates else "",
                ", ".join(edge.notifies),
                edge.owner,
            )
            for edge in self._out.get(name, ())
        )

    def _events(self, name: str) -> list[tuple[str, ...]]:
        """The dispositions of events that do not move the process."""
        return sorted(
            (one.event, one.kind, one.guard) for one in self._kept.get(name, ())
        )
