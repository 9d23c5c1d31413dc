"""A process for a terminal: its row, or the contents of its page without picture and buttons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from monitoring.diagrams import DiagramState
from monitoring.diagrams.painting import NodeState
from monitoring.diagrams.sketch import Sketch, best_sketch
from monitoring.diagrams.text import text_sketch
from monitoring.process.diagram import diagram_of
from monitoring.process.history.history import history_of
from monitoring.process.revision.entries import HistoryPage
from monitoring.process.revision.moment import process_moment
from monitoring.queries.processes import process_rows
from orchestrator.definition.graph import Graph
from orchestrator.models import Incident, ProcessInstance, StepRun
from orchestrator.snapshot import snapshot

OPEN = 20
INCIDENTS = 20


@dataclass(frozen=True)
class Summary:
    """The contents, as of one moment."""

    instance: ProcessInstance
    sketch: Sketch
    states: Mapping[str, NodeState]
    labels: Mapping[str, str]
    open_visits: list[StepRun]
    incidents: list[Incident]
    history: HistoryPage


def process_without_data(pk: UUID) -> ProcessInstance | None:
    """Read a process without its data, which may be large; None without such a process."""
    return process_rows(data=False).filter(pk=pk).first()


def process_drawing(pk: UUID) -> tuple[Graph, DiagramState] | None:
    """Read the graph of a process and where it is now; None without such a process."""
    with snapshot():
        instance = process_rows("owner").filter(pk=pk).first()
        if instance is None:
            return None
        moment = process_moment(instance)
        return moment.graph, diagram_of(moment, sketch=best_sketch(moment.graph))


def process_summary(pk: UUID) -> Summary | None:
    """Read the summary of a process; None without such a process."""
    with snapshot():
        instance = process_rows("owner").filter(pk=pk).first()
        if instance is None:
            return None
        moment = process_moment(instance)
        sketch = text_sketch(moment.graph)
        open_runs = instance.step_runs.filter(finished_at=None).order_by("pk")
        return Summary(
            instance,
            sketch,
            diagram_of(moment, sketch=sketch).nodes,
            moment.labels,
            list(open_runs[:OPEN]),
            list(instance.incidents.open().order_by("-pk")[:INCIDENTS]),
            history_of(moment),
        )
