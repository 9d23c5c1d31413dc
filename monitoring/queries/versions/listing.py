"""The versions of a definition: what runs on each, when it started, and whether the running code still has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404

from monitoring.queries.counts import Capped, capped
from monitoring.queries.definition.standing import standing
from monitoring.queries.graphs import graph_of, labels_of
from orchestrator import registry
from orchestrator.definition.graph import Graph
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import Definition, ProcessInstance

VERSIONS = 30
"""Versions that the page has, the newest."""

GRAPHS = 50
"""Graphs of one version that are looked at, the newest: one made from its input has one for each."""

LACKING = 20
"""Steps that the running code lacks which are named of one version."""


@dataclass(frozen=True)
class Lacking:
    """A step on which processes stand although the running code does not have it.

    Args:
        step: its name.
        label: the same as people read it.
        number: how many stand there.
    """

    step: str
    label: str
    number: Capped


@dataclass(frozen=True)
class VersionRow:
    """One version.

    Args:
        number: of the version.
        definition: its newest row.
        graphs: how many graphs it has: one made from its input has one for each.
        live: the processes that go on with it.
        first: when the first one that is kept has started.
        last: when the last one has.
        code: "there", or "changed" where the running code has another graph under this number, or "gone".
        lacking: the steps with processes on them that the running code lacks, where it has the version at all.
        newest: whether it is the newest one that the running code has.
    """

    number: int
    definition: Definition
    graphs: int
    live: Capped
    first: datetime | None
    last: datetime | None
    code: str
    lacking: Sequence[Lacking] = ()
    newest: bool = False

    @property
    def stands_still(self) -> bool:
        """Whether processes of it cannot go on with the running code, or some cannot."""
        return bool(self.live) and (self.code == "gone" or bool(self.lacking))

    @property
    def text(self) -> str:
        """Its number as addresses have it."""
        return str(self.number)

    @property
    def query(self) -> str:
        """The parameters of the list of the processes that go on with it."""
        return urlencode({**self._about, "status": "live"})

    @property
    def standing(self) -> list[tuple[str, Lacking]]:
        """The parameters of the list of the processes on each step that the running code lacks, and the step."""
        return [
            (urlencode({**self._about, "step": one.step}), one) for one in self.lacking
        ]

    @property
    def _about(self) -> dict[str, str]:
        return {"definition": self.definition.name, "version": self.text}

    @property
    def revisions(self) -> str:
        """Which code it was first seen in, as that has said it."""
        return self.definition.code_revision


@dataclass(frozen=True)
class VersionsPage:
    """All of a definition's versions, the newest first.

    Args:
        name: of the definition.
        rows: the versions.
        more: whether there are older ones.
        target: the newest version that the running code has; None where it has none.
    """

    name: str
    rows: list[VersionRow] = field(default_factory=list)
    more: bool = False
    target: int | None = None

    @property
    def to(self) -> str:
        """The number of that version as addresses have it."""
        return str(self.target or "")

    @property
    def warned(self) -> list[VersionRow]:
        """The versions of which processes cannot go on."""
        return [row for row in self.rows if row.stands_still]


def versions_page(name: str) -> VersionsPage:
    """The versions of a definition; 404 when none of that name was ever seen."""
    rows = Definition.objects.filter(name=name).order_by("-version", "-pk")
    numbers = list(
        rows.order_by("-version")
        .values_list("version", flat=True)
        .distinct()[: VERSIONS + 1]
    )
    if not numbers:
        raise Http404
    target = max(in_code_of(name), default=None)
    found = [_row(name, number, target) for number in numbers[:VERSIONS]]
    return VersionsPage(name, found, len(numbers) > VERSIONS, target)


def in_code_of(name: str) -> set[int]:
    """The numbers of the versions that the running code has."""
    return {version for other, version in registry.definitions if other == name}


def graph_in_code(definition: Definition) -> Graph | None:
    """The graph that the running code has for a stored version; of one made from its input the stored one itself.

    None where it does not have the version any more.
    """
    try:
        known: Any = registry.definition(definition.name, definition.version)
    except UnknownDefinition:
        return None
    if getattr(known, "static", known) is None:
        return graph_of(definition)
    graph: Graph = known.graph()
    return graph


def in_code(definition: Definition) -> bool:
    """Whether the running code has a version at all."""
    return (definition.name, definition.version) in registry.definitions


def live_on(definitions: Iterable[int]) -> QuerySet[ProcessInstance]:
    """The processes that go on with some of the stored rows."""
    return ProcessInstance.objects.live().filter(definition__in=list(definitions))


def _row(name: str, number: int, target: int | None) -> VersionRow:
    starts = ProcessInstance.objects.filter(definition=OuterRef("pk"))
    at = starts.order_by("definition", "started_at").values("started_at")
    back = starts.order_by("-definition", "-started_at").values("started_at")
    rows = Definition.objects.filter(name=name, version=number).defer("graph")
    newest = list(
        rows.order_by("-pk").annotate(first=Subquery(at[:1]), last=Subquery(back[:1]))[
            :GRAPHS
        ]
    )
    number_of_graphs = rows.count() if len(newest) == GRAPHS else len(newest)
    live = capped(live_on(row.pk for row in newest))
    if number_of_graphs > GRAPHS:
        live = Capped(live.number, live.number)  # those of older graphs are not counted
    chosen = newest[0]
    code, lacking = _in_code(chosen)
    return VersionRow(
        number,
        chosen,
        number_of_graphs,
        live,
        min((row.first for row in newest if row.first), default=None),
        max((row.last for row in newest if row.last), default=None),
        code,
        lacking if live else (),
        number == target,
    )


def _in_code(definition: Definition) -> tuple[str, list[Lacking]]:
    known = graph_in_code(definition)
    if known is None:
        return "gone", []
    stored = graph_of(definition)
    if known == stored or known.fingerprint() == definition.fingerprint:
        return "there", []
    there = {node.id for node in known.nodes}
    missing = [node.id for node in stored.nodes if node.id not in there][:LACKING]
    return "changed", _standing(definition, missing) if missing else []


def _standing(definition: Definition, steps: Sequence[str]) -> list[Lacking]:
    """Those of the steps that processes stand on."""
    labels, counted = labels_of(definition), standing(definition, steps)
    found = []
    for step in steps:
        number = counted.number(step)
        unsure = step in counted.unsure
        if number or unsure:
            shown = Capped(number, number if unsure else number + 1)
            found.append(Lacking(step, labels.get(step, step), shown))
    return found
