"""Two versions of a definition side by side: their pictures, differences, and the mapping of steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import Http404
from django.utils.translation import gettext_lazy as _

from monitoring.base.graphs import running_class, stored_graph
from monitoring.diagrams import DiagramState, Drawing, NodeState, drawing_of
from monitoring.diagrams.sketch import Part
from monitoring.queries.lists import parse_number
from orchestrator import registry
from orchestrator.definition.declarations.migrating import MigratesFrom
from orchestrator.definition.graph import Difference, Graph, Node, difference
from orchestrator.models import Definition

ENDS = ("start", "final")
"""Kinds of steps without live processes."""

MAPPABLE = 80
"""The maximum number of steps with a select box each; in larger graphs only steps without a match have one."""

MARKS = {
    "added": ("+", _("added")),
    "removed": ("\N{MINUS SIGN}", _("removed")),
    "changed": ("≠", _("changed")),
}
"""The sign at the corner of a step and its word, beside the colour, by mark."""

ASPECTS = {
    "name": _("its name"),
    "kind": _("its kind"),
    "detail": _("what it waits for or repeats over"),
    "undo": _("how it is undone"),
    "ways in": _("the ways in"),
    "ways out": _("the ways out"),
    "events": _("what becomes of other events"),
}
"""The words for the aspects in which a step can differ."""


@dataclass(frozen=True)
class VersionSide:
    """One of the two versions.

    Args:
        definition: its newest row.
        graph: its graph.
        drawing: the picture.
        state: the marks of its steps.
    """

    definition: Definition
    graph: Graph
    drawing: Drawing
    state: DiagramState


@dataclass(frozen=True)
class StepPair:
    """A step of the older version, and its match in the newer one.

    Args:
        node: the step.
        target: the step of the newer version; None for a removed step.
        marks: what has changed, in words.
    """

    node: Node
    target: Node | None
    marks: tuple[str, ...]

    @property
    def waits(self) -> bool:
        """Whether live processes can be in it: not in the first and last steps of a process manager."""
        return self.node.kind not in ENDS


@dataclass(frozen=True)
class ComparedVersions:
    """Two versions."""

    old: VersionSide
    new: VersionSide
    difference: Difference

    @property
    def pairs(self) -> list[StepPair]:
        """The steps of the older version in its order, each with its match."""
        there = {node.id: node for node in self.new.graph.nodes}
        mapped, changed = self.difference.mapped, self.difference.changed
        return [
            StepPair(
                node,
                there.get(mapped.get(node.id, "")),
                tuple(str(ASPECTS[one]) for one in changed.get(node.id, ())),
            )
            for node in self.old.graph.nodes
        ]

    @property
    def choices(self) -> list[Node]:
        """The steps of the newer version to choose from: a migration neither starts nor ends a process."""
        return [node for node in self.new.graph.nodes if node.kind not in ENDS]

    @property
    def mappable(self) -> bool:
        """Whether each step has a select box."""
        return len(self.old.graph.nodes) <= MAPPABLE

    @property
    def added(self) -> list[Node]:
        """The new steps."""
        names = set(self.difference.added)
        return [node for node in self.new.graph.nodes if node.id in names]


def version_row(name: str, number: str) -> Definition:
    """Return the newest row of a version; 404 if neither the tables nor the running code have it."""
    rows = Definition.objects.filter(name=name).defer("graph")
    wanted = parse_number(number, 9) or 0
    found = rows.filter(version=wanted).order_by("-pk").first()
    return found or _unsaved_row(name, wanted)


def _unsaved_row(name: str, version: int) -> Definition:
    """Return an unsaved row of a version of the running code; 404 without one."""
    known: Any = registry.definitions.get((name, version))
    if known is None:
        raise Http404
    graph: Graph = known.graph()
    kind, fingerprint = graph.kind, graph.fingerprint()
    return Definition(name=name, version=version, kind=kind, fingerprint=fingerprint)


def version_graph(definition: Definition) -> Graph:
    """Return the graph of a version: the stored one, else that of the running code."""
    if not definition._state.adding:
        return stored_graph(definition)
    graph: Graph = running_class(definition).graph()
    return graph


def step_mapping(
    old: Definition, new: Definition, chosen: Mapping[str, str]
) -> dict[str, str]:
    """Return the mapping of steps of one version to another: as chosen, else as in the code, else by name."""
    known = registry.definitions.get((new.name, new.version))
    row = known.migration_from(old.version) if known else MigratesFrom(old.version)
    before = [node.id for node in version_graph(old).nodes]
    return row.mapping(before, [node.id for node in version_graph(new).nodes], chosen)


def compare_versions(
    old: Definition, new: Definition, mapping: Mapping[str, str] | None = None
) -> ComparedVersions:
    """Compare two versions; a mapping pairs their steps, or else their names do."""
    before, after = version_graph(old), version_graph(new)
    found = difference(before, after, mapping)
    left = drawing_of(before, old.fingerprint)
    right = drawing_of(after, new.fingerprint)
    gone = dict.fromkeys(found.removed, "removed")
    come = dict.fromkeys(found.added, "added")
    other = dict.fromkeys(found.changed, "changed")
    there = {found.mapped[name]: mark for name, mark in other.items()}
    said = {
        name: ", ".join(str(ASPECTS[one]) for one in aspects)
        for name, aspects in found.changed.items()
    }
    said_there = {found.mapped[name]: text for name, text in said.items()}
    return ComparedVersions(
        VersionSide(old, before, left, _mark_steps(left, gone | other, said)),
        VersionSide(new, after, right, _mark_steps(right, come | there, said_there)),
        found,
    )


def _mark_steps(
    drawing: Drawing, marks: Mapping[str, str], said: Mapping[str, str]
) -> DiagramState:
    """Return the marks of a side's steps; a part of several steps has the marks of all."""
    found = {}
    for part in drawing.sketch.steps():
        mine = [marks[name] for name in part.members if name in marks]
        if mine:
            found[part.id] = _node(part, mine, said)
    return DiagramState(found)


def _node(part: Part, marks: list[str], said: Mapping[str, str]) -> NodeState:
    kinds = [kind for kind in MARKS if kind in marks]
    several = len(part.members) > 1
    signs = [f"{MARKS[k][0]}{marks.count(k) if several else ''}" for k in kinds]
    words = [str(MARKS[kind][1]) for kind in kinds]
    more = [said[name] for name in part.members if name in said][:3]
    return NodeState(
        tuple(f"is-{kind}" for kind in kinds),
        count=" ".join(signs),
        title=f"{part.label}: {', '.join([*words, *more])}",
    )
