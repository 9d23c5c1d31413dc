"""Everything the page of one definition shows beside its list of instances."""

from dataclasses import dataclass

from django.http import Http404

from monitoring.diagrams import DiagramState, Drawing, drawing_of
from monitoring.queries.definitions import Counts, counts_of, map_state
from monitoring.queries.graphs import graph_of
from monitoring.queries.instances import Filters
from orchestrator.definition.graph import Graph
from orchestrator.models import Definition

VERSIONS = 50
"""Versions that the page names."""


@dataclass(frozen=True)
class DefinitionPage:
    """The read model of the page."""

    definition: Definition
    versions: list[int]
    graph: Graph
    drawing: Drawing
    counts: Counts
    state: DiagramState

    @property
    def is_workflow(self) -> bool:
        return self.definition.kind == Definition.Kind.WORKFLOW


def definition_page(name: str, filters: Filters) -> DefinitionPage:
    """The version that the filters name, else the newest; 404 when there is none."""
    # A workflow whose graph comes with its input has many rows of the same version.
    rows = Definition.objects.defer("graph").filter(name=name)
    versions = list(
        rows.order_by("-version").values_list("version", flat=True).distinct()
    )
    if filters.version:
        wanted = filters.version[:9]
        rows = rows.filter(version=int(wanted)) if wanted.isdecimal() else rows.none()
    chosen = rows.order_by("-version", "-pk").first()
    if chosen is None:
        raise Http404
    graph = graph_of(chosen)
    counts = counts_of(name, chosen if filters.version else None)
    drawing = drawing_of(graph, chosen.fingerprint)
    state = map_state(drawing.sketch, counts, filters.step)
    return DefinitionPage(chosen, versions[:VERSIONS], graph, drawing, counts, state)
