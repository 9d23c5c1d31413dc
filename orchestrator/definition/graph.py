"""Any definition as plain nodes and edges. Procession stores, fingerprints and draws them.

Edges carry the values of guards as data. So a stored graph still tells which steps an old process can reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
