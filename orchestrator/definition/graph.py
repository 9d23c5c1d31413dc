"""Any definition as plain nodes and edges, and the comparison of two. Procession stores, fingerprints and draws them.

Edges carry the values of guards as data. So a stored graph still tells which steps an old process can reach. A mapping
pairs the steps of two graphs that are compared. Without a mapping, steps of the same name are pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from orchestrator.containers import group_by_key
from orchestrator.definition.codec import digest


@dataclass(frozen=True)
class Node:
    """A step: `start`, `step` or `final` of a process manager, or the kind of work of a workflow's step.

    `detail` is one line on what it waits for or repeats over. `entry` marks the steps with which a process begins.
    `undo` names its undo function. `join` says how many of its incoming edges it needs, unless it needs all. `split`
    says which of its outgoing edges are taken: all (""), "some" (by their conditions) or "one".
    """

    id: str
    label: str
    kind: Literal["start", "step", "final", "map", "wait", "ask", "run", "sleep"]
    detail: str = ""
    entry: bool = False
    undo: str = ""
    join: str = ""
    split: Literal["", "some", "one"] = ""


@dataclass(frozen=True)
class Edge:
    """A transition, with its label in three parts: event, guard, commands.

    A workflow's edges are `flow` (always), `case`, `default`, `repeat` (back into a loop), `error` and `deadline`.

    `accepts` maps data fields to their accepted values, `assigns` to their possible values afterwards (None: any).
    `at_once` are the commands that are carried out in no order, `sets` the labels of computed fields, `notifies` the
    names of recipients, `owner` the name of the new owner.
    """

    id: str
    source: str
    target: str
    kind: Literal["event", "deadline", "flow", "case", "default", "repeat", "error"]
    event: str = ""
    guard: str = ""
    commands: tuple[str, ...] = ()
    escalates: bool = False
    accepts: Mapping[str, list[Any]] = field(default_factory=dict)
    assigns: Mapping[str, list[Any] | None] = field(default_factory=dict)
    at_once: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    notifies: tuple[str, ...] = ()
    owner: str = ""

    @property
    def actions(self) -> list[str]:
        """The actions of the transition, in words."""
        commands = [
            f"{command} at once" if command in self.at_once else command
            for command in self.commands
        ]
        return [*self.sets, *commands]


@dataclass(frozen=True)
class Disposition:
    """The disposition of an event that no transition of a step takes. Without one, the event is parked."""

    step: str
    event: str
    kind: Literal["ignore", "reject", "park"]
    guard: str = ""


@dataclass(frozen=True)
class Graph:
    """A definition's nodes and edges, and the dispositions of its transition table."""

    name: str
    version: int
    kind: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    dispositions: tuple[Disposition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "kind": self.kind,
            "nodes": [asdict(node) for node in self.nodes],
            "edges": list(map(_stored, self.edges)),
            "dispositions": list(map(_stored, self.dispositions)),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Graph:
        return cls(
            stored["name"],
            stored["version"],
            stored["kind"],
            tuple(Node(**node) for node in stored["nodes"]),
            tuple(
                Edge(**{name: _listed(value) for name, value in edge.items()})
                for edge in stored["edges"]
            ),
            tuple(Disposition(**one) for one in stored["dispositions"]),
        )

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical graph. Equal definitions have equal fingerprints."""
        return digest(self.to_json())


LATER: dict[type[Any], tuple[str, ...]] = {
    Edge: ("at_once", "sets", "notifies", "owner"),
    Disposition: ("guard",),
}
"""Fields of later releases. Empty ones are not stored, so that the fingerprints of earlier releases stay valid."""


def _stored(one: Edge | Disposition) -> dict[str, Any]:
    """Return the JSON form, without empty fields of later releases."""
    later = LATER[type(one)]
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(one).items()
        if value or name not in later
    }


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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
