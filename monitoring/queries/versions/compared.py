"""Two versions of a definition side by side: their pictures, what differs, and which step of the one is which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _

from monitoring.diagrams import DiagramState, Drawing, NodeState, drawing_of
from monitoring.diagrams.sketch import Part
from monitoring.queries.graphs import graph_of
from monitoring.queries.lists import number_in
from orchestrator import registry
from orchestrator.definition.difference import Difference, difference
from orchestrator.definition.graph import Graph, Node
from orchestrator.definition.migrating import MigratesFrom
from orchestrator.models import Definition

ENDS = ("start", "final")
"""Kinds of steps in which no process is that goes on."""

MAPPABLE = 80
"""Steps up to which each has a box of its own; of larger graphs those that are none of the other version."""

SIGNS = {"added": "+", "removed": "\N{MINUS SIGN}", "changed": "≠"}
"""At a step's corner: what is told by colour is told by these too."""


@dataclass(frozen=True)
class VersionSide:
    """One of the two.

    Args:
        definition: its newest row.
        graph: what it looks like.
        drawing: the picture.
        state: how its steps are marked.
    """

    definition: Definition
    graph: Graph
    drawing: Drawing
    state: DiagramState

    @property
    def number(self) -> str:
        """Its version's, as addresses have it."""
        return str(self.definition.version)


@dataclass(frozen=True)
class StepPair:
    """A step of the older version, and what of the other it is.

    Args:
        name: of the step.
        label: as people read it.
        target: the step of the other version; "" where it has none.
        target_label: the same as people read it.
        marks: what has changed with it, in words.
    """

    name: str
    label: str
    target: str
    target_label: str
    marks: tuple[str, ...] = ()
    waits: bool = True
    """Whether a process can be in it: of a process manager none is in the first and the last steps."""


@dataclass(frozen=True)
class ComparedVersions:
    """Two versions."""

    old: VersionSide
    new: VersionSide
    difference: Difference

    @property
    def pairs(self) -> list[StepPair]:
        """The steps of the older version in its order, each with what became of it."""
        labels = {node.id: node.label for node in self.new.graph.nodes}
        mapped, changed = self.difference.mapped, self.difference.changed
        return [
            StepPair(
                node.id,
                node.label,
                mapped.get(node.id, ""),
                labels.get(mapped.get(node.id, ""), ""),
                tuple(map(aspect_word, changed.get(node.id, ()))),
                node.kind not in ENDS,
            )
            for node in self.old.graph.nodes
        ]

    @property
    def choices(self) -> list[Node]:
        """The steps of the other version that a step can be: no process begins or ends by a migration."""
        return [node for node in self.new.graph.nodes if node.kind not in ENDS]

    @property
    def mappable(self) -> bool:
        """Whether each step has a box in which it can be said what it is."""
        return len(self.old.graph.nodes) <= MAPPABLE

    @property
    def added(self) -> list[Node]:
        """The steps that are new."""
        names = set(self.difference.added)
        return [node for node in self.new.graph.nodes if node.id in names]


def version_row(name: str, number: str) -> Definition:
    """The newest row of a version; 404 where it was never seen and the running code does not have it."""
    rows = Definition.objects.filter(name=name).defer("graph")
    wanted = number_in(number, 9) or 0
    found = rows.filter(version=wanted).order_by("-pk").first()
    if found is None:
        return _not_stored(name, wanted)
    return found


def _not_stored(name: str, version: int) -> Definition:
    """A version that the running code has and no process has begun on; 404 where it has none."""
    known: Any = registry.definitions.get((name, version))
    if known is None:
        raise Http404
    graph: Graph = known.graph()
    kind, fingerprint = graph.kind, graph.fingerprint()
    return Definition(name=name, version=version, kind=kind, fingerprint=fingerprint)


def picture_of(definition: Definition) -> Graph:
    """The graph of a version: as it is stored, else as the running code has it."""
    if not definition._state.adding:
        return graph_of(definition)
    known: Any = registry.definitions[definition.name, definition.version]
    graph: Graph = known.graph()
    return graph


def mapped(
    old: Definition, new: Definition, chosen: Mapping[str, str]
) -> dict[str, str]:
    """Which step of a version each of another is: as a person says, else the code, else by its name."""
    known = registry.definitions.get((new.name, new.version))
    row = known.migration_from(old.version) if known else MigratesFrom(old.version)
    before = [node.id for node in picture_of(old).nodes]
    return row.mapping(before, [node.id for node in picture_of(new).nodes], chosen)


def compared(
    old: Definition, new: Definition, mapping: Mapping[str, str] | None = None
) -> ComparedVersions:
    """Two versions; with a mapping the steps are paired by it, else those of the same name."""
    before, after = picture_of(old), picture_of(new)
    found = difference(before, after, mapping)
    left = drawing_of(before, old.fingerprint)
    right = drawing_of(after, new.fingerprint)
    gone = dict.fromkeys(found.removed, "removed")
    come = dict.fromkeys(found.added, "added")
    other = dict.fromkeys(found.changed, "changed")
    there = {found.mapped[name]: mark for name, mark in other.items()}
    said = {
        name: ", ".join(map(aspect_word, aspects))
        for name, aspects in found.changed.items()
    }
    said_there = {found.mapped[name]: text for name, text in said.items()}
    return ComparedVersions(
        VersionSide(old, before, left, _marked(left, gone | other, said)),
        VersionSide(new, after, right, _marked(right, come | there, said_there)),
        found,
    )


def _marked(
    drawing: Drawing, marks: Mapping[str, str], said: Mapping[str, str]
) -> DiagramState:
    """The marks of a side's steps; a part that stands for several has those of all of them."""
    found = {}
    for part in drawing.sketch.steps():
        mine = [marks[name] for name in part.members if name in marks]
        if mine:
            found[part.id] = _node(part, mine, said)
    return DiagramState(found)


def _node(part: Part, marks: list[str], said: Mapping[str, str]) -> NodeState:
    kinds = [kind for kind in SIGNS if kind in marks]
    several = len(part.members) > 1
    signs = [f"{SIGNS[k]}{marks.count(k) if several else ''}" for k in kinds]
    words = [mark_word(kind) for kind in kinds]
    more = [said[name] for name in part.members if name in said][:3]
    return NodeState(
        tuple(f"is-{kind}" for kind in kinds),
        count=" ".join(signs),
        title=f"{part.label}: {', '.join([*words, *more])}",
    )


def mark_word(mark: str) -> str:
    """What a mark means."""
    words = {
        "added": _("added"),
        "removed": _("removed"),
        "changed": _("changed"),
    }
    return words[mark]


def aspect_word(aspect: str) -> str:
    """What of a step is another, in words."""
    words = {
        "name": _("its name"),
        "kind": _("its kind"),
        "detail": _("what it waits for or repeats over"),
        "undo": _("how it is undone"),
        "ways in": _("the ways in"),
        "ways out": _("the ways out"),
        "events": _("what becomes of other events"),
    }
    return words[aspect]
