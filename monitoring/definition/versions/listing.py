"""The versions of a definition: their processes and starts, and whether the running code has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404

from monitoring.base.graphs import labels_of, running_class, stored_graph
from monitoring.definition.step_counts import step_counts
from monitoring.queries.counts import Capped, count_rows
from orchestrator import registry
from orchestrator.definition.graph import Graph
from orchestrator.models import Definition, ProcessInstance

VERSIONS = 30
"""The newest versions that the page shows."""

GRAPHS = 50
"""The newest graphs of one version to look at; a graph made from input has one for each input."""

LACKING = 20
"""Missing steps of one version that the page names."""


@dataclass(frozen=True)
class MissingStep:
    """A step with processes that the running code lacks.

    Args:
        step: its name.
        label: for people.
        number: of processes in it.
    """

    step: str
    label: str
    number: Capped


@dataclass(frozen=True)
class VersionRow:
    """One version.

    Args:
        number: the number of the version.
        definition: its newest row.
        graphs: the number of its graphs; a workflow may make one from each input.
        live: the number of live processes.
        first: the start of the first stored process.
        last: the start of the last process.
        code: "there", "gone", or "changed" if the running code has another graph under this number.
        lacking: the steps with processes that the running code lacks, if it has the version.
    """

    number: int
    definition: Definition
    graphs: int
    live: Capped
    first: datetime | None
    last: datetime | None
    code: str
    lacking: Sequence[MissingStep] = ()

    @property
    def stands_still(self) -> bool:
        """Whether some of its processes cannot continue with the running code."""
        return bool(self.live) and (self.code == "gone" or bool(self.lacking))

    @property
    def query(self) -> str:
        """The parameters of the list of its live processes."""
        return urlencode({**self._about, "status": "live"})

    @property
    def standing(self) -> list[tuple[str, MissingStep]]:
        """The missing steps, each with the parameters of the list of its processes."""
        return [
            (urlencode({**self._about, "step": one.step}), one) for one in self.lacking
        ]

    @property
    def _about(self) -> dict[str, str]:
        return {"definition": self.definition.name, "version": str(self.number)}


@dataclass(frozen=True)
class VersionsPage:
    """The versions of a definition, the newest first.

    Args:
        name: of the definition.
        rows: the versions.
        more: whether there are older ones.
        target: the newest version of the running code; None without one.
    """

    name: str
    rows: list[VersionRow] = field(default_factory=list)
    more: bool = False
    target: int | None = None

    @property
    def warned(self) -> list[VersionRow]:
        """The versions with processes that cannot continue."""
        return [row for row in self.rows if row.stands_still]


def versions_page(name: str) -> VersionsPage:
    """Return the versions of a definition; 404 without any."""
    rows = Definition.objects.filter(name=name).order_by("-version", "-pk")
    numbers = list(
        rows.order_by("-version")
        .values_list("version", flat=True)
        .distinct()[: VERSIONS + 1]
    )
    if not numbers:
        raise Http404
    target = max(versions_in_code(name), default=None)
    found = [_row(name, number) for number in numbers[:VERSIONS]]
    return VersionsPage(name, found, len(numbers) > VERSIONS, target)


def versions_in_code(name: str) -> set[int]:
    """Return the version numbers of the running code."""
    return {version for other, version in registry.definitions if other == name}


def graph_in_code(definition: Definition) -> Graph | None:
    """Return the running code's graph of a stored version; for a graph made from input, the stored one.

    It is None if the running code lacks the version.
    """
    known = running_class(definition)
    if known is None:
        return None
    if getattr(known, "static", known) is None:
        return stored_graph(definition)
    graph: Graph = known.graph()
    return graph


def live_processes(definitions: Iterable[int]) -> QuerySet[ProcessInstance]:
    """Return the live processes of some stored rows."""
    return ProcessInstance.objects.live().filter(definition__in=list(definitions))


def _row(name: str, number: int) -> VersionRow:
    rows = Definition.objects.filter(name=name, version=number).defer("graph")
    newest = list(_with_starts(rows.order_by("-pk"))[:GRAPHS])
    number_of_graphs = rows.count() if len(newest) == GRAPHS else len(newest)
    live = count_rows(live_processes(row.pk for row in newest))
    if number_of_graphs > GRAPHS:  # processes on older graphs are not counted
        live = Capped.of(live.number, more=True)
    chosen = newest[0]
    code, lacking = _compare_with_code(chosen)
    return VersionRow(
        number,
        chosen,
        number_of_graphs,
        live,
        min((row.first for row in newest if row.first), default=None),
        max((row.last for row in newest if row.last), default=None),
        code,
        lacking if live else (),
    )


def _with_starts(rows: QuerySet[Definition]) -> Any:
    """Annotate definitions with the starts of their first and their last process."""
    starts = ProcessInstance.objects.filter(definition=OuterRef("pk"))
    at = starts.order_by("definition", "started_at").values("started_at")
    back = starts.order_by("-definition", "-started_at").values("started_at")
    return rows.annotate(first=Subquery(at[:1]), last=Subquery(back[:1]))


def _compare_with_code(definition: Definition) -> tuple[str, list[MissingStep]]:
    known = graph_in_code(definition)
    if known is None:
        return "gone", []
    stored = stored_graph(definition)
    if known == stored or known.fingerprint() == definition.fingerprint:
        return "there", []
    there = {node.id for node in known.nodes}
    missing = [node.id for node in stored.nodes if node.id not in there][:LACKING]
    return "changed", _missing_steps(definition, missing) if missing else []


def _missing_steps(definition: Definition, steps: Sequence[str]) -> list[MissingStep]:
    """Return those of the steps that have processes."""
    labels, counts = labels_of(definition), step_counts(definition, steps)
    numbers = {step: counts.capped(step) for step in steps}
    return [
        MissingStep(step, labels.get(step, step), number)
        for step, number in numbers.items()
        if number or number.at_least
    ]
