"""A process as a terminal shows it: what its page has, without a picture and without buttons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from monitoring.diagrams.painting import NodeState
from monitoring.diagrams.sketch import Sketch
from monitoring.diagrams.text import text_sketch
from monitoring.queries.graphs import attempts_of, graph_of, labels_of
from monitoring.queries.instance.diagram import instance_state
from monitoring.queries.instance.entries import HistoryPage
from monitoring.queries.instance.history import history_of
from monitoring.queries.instance.past import newest_runs
from monitoring.queries.instance.step_states import step_states_of
from monitoring.queries.instance.taken import taken_edges
from monitoring.queries.instance.workflow_diagram import workflow_state
from monitoring.queries.instance.workflow_history import workflow_history_of
from monitoring.queries.processes import processes
from orchestrator.models import Incident, ProcessInstance, StepRun
from orchestrator.snapshot import snapshot

OPEN = 20
INCIDENTS = 20


@dataclass(frozen=True)
class Summary:
    """All of it, as of one moment."""

    instance: ProcessInstance
    sketch: Sketch
    states: Mapping[str, NodeState]
    labels: Mapping[str, str]
    open_visits: list[StepRun]
    incidents: list[Incident]
    history: HistoryPage


def summary_of(pk: UUID) -> Summary | None:
    """Reads what is shown of a process; None when there is none."""
    with snapshot():
        instance = processes("owner").filter(pk=pk).first()
        if instance is None:
            return None
        workflow = instance.definition.is_workflow
        labels = labels_of(instance.definition)
        sketch, states = _diagram(instance, workflow)
        start = next((p.id for p in sketch.parts if p.shape == "start"), "")
        history = (
            workflow_history_of(instance, labels)
            if workflow
            else history_of(instance, start, labels)
        )
        open_runs = instance.step_runs.filter(finished_at=None).order_by("pk")
        return Summary(
            instance,
            sketch,
            states,
            labels,
            list(open_runs[:OPEN]),
            list(instance.incidents.open().order_by("-pk")[:INCIDENTS]),
            history,
        )


def _diagram(
    instance: ProcessInstance, workflow: bool
) -> tuple[Sketch, Mapping[str, NodeState]]:
    graph = graph_of(instance.definition)
    sketch, taken = text_sketch(graph), taken_edges(instance)
    if not workflow:
        runs = newest_runs(instance)
        return sketch, instance_state(graph, instance, runs, taken).nodes
    attempts = attempts_of(instance.definition)
    states = step_states_of(instance)
    return sketch, workflow_state(
        graph, sketch, instance, states, taken, attempts
    ).nodes
