"""What differs between two graphs of one definition, step by step: what was added, what was removed, what was changed.

Which step of the one is which of the other a mapping says; without one, steps of the same name are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.collecting import gathered
from orchestrator.definition.graph import Graph, Node

Aspect = Literal["name", "kind", "detail", "undo", "ways in", "ways out", "events"]
"""What of a step may be another."""


@dataclass(frozen=True)
class Difference:
    """How a graph has become another.

    Args:
        mapped: the steps that both have: of the one, and of the other.
        removed: the steps of the one that are none of the other.
        added: the steps of the other that were none of the one.
        changed: what is another with steps that both have, by their names in the one.
    """

    mapped: Mapping[str, str]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    changed: Mapping[str, tuple[Aspect, ...]]

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.changed)


def same_names(old: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    """Maps each step to the one of the same name, where there is one."""
    known = set(new)
    return {name: name for name in old if name in known}


def difference(
    old: Graph, new: Graph, mapping: Mapping[str, str] | None = None
) -> Difference:
    """How one graph has become another.

    Args:
        old: the one.
        new: the other.
        mapping: which step of the one is which of the other; steps of the same name without one. What it says of
            steps that are not there is left out.
    """
    before = {node.id: node for node in old.nodes}
    after = {node.id: node for node in new.nodes}
    if mapping is None:
        mapping = same_names(before, after)
    mapped = {a: b for a, b in mapping.items() if a in before and b in after}
    taken = set(mapped.values())
    known_old, known_new = _Around(old, mapped), _Around(new, {b: b for b in after})
    changed = {}
    for name, now in mapped.items():
        aspects = tuple(_aspects(before[name], after[now], known_old, known_new))
        if aspects:
            changed[name] = aspects
    return Difference(
        mapped,
        tuple(name for name in before if name not in mapped),
        tuple(name for name in after if name not in taken),
        changed,
    )


def _aspects(old: Node, new: Node, before: _Around, after: _Around) -> Iterable[Aspect]:
    if old.id != new.id:
        yield "name"
    if old.kind != new.kind:
        yield "kind"
    if old.detail != new.detail:
        yield "detail"
    if old.undo != new.undo:
        yield "undo"
    if (old.join, old.entry) != (new.join, new.entry) or (
        before.sources(old.id) != after.sources(new.id)
    ):
        yield "ways in"
    if old.split != new.split or before.ways(old.id) != after.ways(new.id):
        yield "ways out"
    if before.kept(old.id) != after.kept(new.id):
        yield "events"


class _Around:
    """What surrounds the steps of a graph, in the names that a mapping gives them."""

    def __init__(self, graph: Graph, names: Mapping[str, str]) -> None:
        self._names, self._joins = names, graph.kind == "workflow"
        self._out = gathered((edge.source, edge) for edge in graph.edges)
        self._in = gathered((edge.target, edge) for edge in graph.edges)
        self._kept = gathered((one.step, one) for one in graph.dispositions)

    def _named(self, name: str) -> str:
        return self._names.get(name, f"\0{name}")

    def sources(self, name: str) -> list[str]:
        """From where the ways in come; of a process manager that says nothing of the step itself."""
        edges = self._in.get(name, ()) if self._joins else ()
        return sorted(self._named(edge.source) for edge in edges)

    def ways(self, name: str) -> list[tuple[str, ...]]:
        """The ways out, as they are drawn."""
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

    def kept(self, name: str) -> list[tuple[str, ...]]:
        """What becomes of the events that take no way."""
        return sorted(
            (one.event, one.kind, one.guard) for one in self._kept.get(name, ())
        )
