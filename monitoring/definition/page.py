"""The page of a definition, without its list of processes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.base.graphs import stored_graph
from monitoring.base.moments import full_time
from monitoring.definition.definitions import StatusCounts, status_counts
from monitoring.definition.filters import MapFilters
from monitoring.definition.overlay import OVERLAYS, MapFigures, StepNumbers
from monitoring.definition.seen_visits import seen_visits
from monitoring.definition.step_counts import step_counts
from monitoring.diagrams import DiagramState, Drawing, MapLayer, drawing_of
from monitoring.queries.activity import HERE, LEFT, NOW, WINDOWS, window_word
from monitoring.queries.window import read_window
from orchestrator.definition.graph import Graph
from orchestrator.models import Definition, ProcessInstance

VERSIONS = 50
"""The maximum number of versions that the page names."""

OF_FINGERPRINT = 12
"""The number of characters of a fingerprint that distinguish the graphs of one version."""

LISTED = 60
"""The maximum number of parts of a map whose numbers are also shown as a table."""

ChoiceLink = tuple[str, str, bool]
"""Parameters of the address, the label, and whether it is chosen."""


@dataclass(frozen=True)
class DefinitionPage:
    """The read model of the page.

    Args:
        definition: the row whose graph is drawn; all numbers of the map are of processes on this row.
        versions: the numbers of the versions, newest first.
        graphs: the number of graphs of this version; a workflow may make one from each input.
        graph: the drawn graph.
        drawing: the picture.
        counts: of the processes of all versions, or of the chosen one.
        filters: of the address, with the drawn version.
        figures: of the map.
        state: of the picture.
    """

    definition: Definition
    versions: list[int]
    graphs: int
    graph: Graph
    drawing: Drawing
    counts: StatusCounts
    filters: MapFilters
    figures: MapFigures
    state: DiagramState

    @property
    def layer(self) -> MapLayer:
        """The layer above the picture."""
        ways = [way for way, _number in self.figures.seen.ways]
        return MapLayer(self._links(), ways, self._caption())

    @property
    def query(self) -> str:
        """The parameters of the map."""
        return urlencode(self.filters.view())

    @property
    def scale(self) -> list[str]:
        return self.figures.scale()

    @property
    def steps(self) -> list[StepNumbers]:
        """The numbers of each part of the map; empty for large maps."""
        rows = list(self.figures.rows())
        return rows if len(rows) <= LISTED else []

    def overlays(self) -> Iterator[ChoiceLink]:
        """Yield the overlays to choose from."""
        for name, word in OVERLAYS.items():
            given = self.filters.parameters(overlay="" if name == "now" else name)
            chosen = name == self.filters.compared
            yield urlencode(given), str(word), chosen

    def windows(self) -> Iterator[ChoiceLink]:
        """Yield the windows to choose from."""
        usual = next(iter(WINDOWS))
        for name in WINDOWS:
            given = self.filters.parameters(window="" if name == usual else name)
            # The list follows the window.
            if given.get("doing", "").startswith(LEFT):
                given["doing"] = f"{LEFT}{name}"
            chosen = name == self.filters.window_name
            yield urlencode(given), window_word(name), chosen

    @property
    def compared_word(self) -> str:
        return str(OVERLAYS[self.filters.compared])

    @property
    def ways(self) -> list[tuple[str, str, int]]:
        """The undeclared ways: the labels of their ends, and their numbers."""
        labels = {node.id: node.label for node in self.graph.nodes}
        return [
            (labels.get(source, source), labels.get(target, target), number)
            for (source, target), number in self.figures.seen.ways
        ]

    @property
    def never_text(self) -> str:
        """The meaning of a dashed step, with the number of processes looked at."""
        seen = self.figures.seen
        if not seen.processes:
            return _("no process of this version was found")
        if seen.visited is None:
            return _("there are too many visits to say which steps were never visited")
        told = (
            ngettext(
                "never visited, by the only process of this version",
                "never visited, by any of the %(number)d processes of this version",
                seen.processes,
            )
            if seen.whole
            else ngettext(
                "not visited by the newest process of this version, which was looked at",
                "not visited by the newest %(number)d processes of this version, which were looked at",
                seen.processes,
            )
        )
        return told % {"number": seen.processes}

    @property
    def window_text(self) -> str:
        return window_word(self.filters.window_name)

    @property
    def finished(self) -> str:
        """The filter `doing` for processes that finished a step in the window."""
        return f"{LEFT}{self.filters.window_name}"

    def _links(self) -> dict[str, str]:
        left = {"finished": f"doing={self.finished}"}
        now = {name: f"doing={name}" for name in (HERE, *NOW)}
        return now | left

    def _caption(self) -> list[str]:
        """Return the caption of a picture in a file."""
        about = _("%(name)s version %(version)s") % {
            "name": self.definition.name,
            "version": self.definition.version,
        }
        lines = [
            f"{about} · {self.compared_word} · {self.window_text} · {full_time(timezone.now())}"
        ]
        if self.scale:
            levels = enumerate(self.scale, 1)
            lines.append("   ".join(f"{level}: {text}" for level, text in levels))
        else:
            lines.append(
                _("▸ at work   … waiting   ! failed   ✓ finished in the window")
            )
        return lines


def definition_page(name: str, filters: MapFilters) -> DefinitionPage:
    """Return the page of the version in the filters, or of the newest version with processes; 404 without one.

    A workflow whose graph comes from its input has many rows of one version: the page shows the newest, or the row with
    the fingerprint in the filters. All numbers of the map are of processes on this graph.
    """
    rows = Definition.objects.defer("graph").filter(name=name)
    counted = rows.order_by("-version").values_list("version").annotate(Count("pk"))
    versions = dict(counted)
    chosen = _chosen_row(rows, filters)
    graphs = versions[chosen.version]
    graph = stored_graph(chosen)
    drawing = drawing_of(graph, chosen.fingerprint)
    drawn = replace(
        filters,
        version=str(chosen.version),
        graph=chosen.fingerprint[:OF_FINGERPRINT] if graphs > 1 else "",
    )
    figures = MapFigures(
        drawn.compared,
        step_counts(chosen, [node.id for node in graph.nodes]),
        read_window(chosen, drawn.window_name),
        seen_visits(chosen, graph),
        drawing.sketch,
    )
    return DefinitionPage(
        chosen,
        list(versions)[:VERSIONS],
        graphs,
        graph,
        drawing,
        status_counts(name, _rows_of(chosen, filters)),
        drawn,
        figures,
        figures.state(filters.step),
    )


def _chosen_row(rows: QuerySet[Definition], filters: MapFilters) -> Definition:
    if filters.version:
        wanted = filters.version[:9]
        rows = rows.filter(version=int(wanted)) if wanted.isdecimal() else rows.none()
    if filters.graph:
        rows = rows.filter(fingerprint__startswith=filters.graph)
    newest = rows.order_by("-version", "-pk")
    theirs = ProcessInstance.objects.filter(definition=OuterRef("pk"))
    # A version without processes yet would be an empty map, while all run on the one before.
    chosen = newest.filter(Exists(theirs)).first() or newest.first()
    if chosen is None:
        raise Http404
    return chosen


def _rows_of(chosen: Definition, filters: MapFilters) -> list[int] | None:
    """Return the keys of the stored rows of the list; None for all of the name."""
    if filters.graph:
        return [chosen.pk]
    if not filters.version:
        return None
    same = Definition.objects.filter(name=chosen.name, version=chosen.version)
    return list(same.values_list("pk", flat=True))
