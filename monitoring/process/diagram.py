"""A process on its diagram: its current step, the taken edges, and the edges that it may still take."""

from collections import Counter
from collections.abc import Mapping

from django.utils.translation import gettext as _

from monitoring.base.statuses import look
from monitoring.diagrams import DiagramState, NodeState
from monitoring.diagrams.sketch import Sketch
from monitoring.process.revision.moment import ProcessMoment
from monitoring.process.steps.step_states import (
    StepState,
    current_status,
    step_states_of,
)
from monitoring.process.workflow_diagram import workflow_state
from orchestrator.definition.dataflow import reachable
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.models import ProcessInstance, StepKind
from orchestrator.models.process_instance import ENDED

HERE = "has-now"
"""The class of a step in which the process is now, on a diagram of its past."""


def diagram_of(
    moment: ProcessMoment,
    states: Mapping[str, StepState] | None = None,
    sketch: Sketch | None = None,
) -> DiagramState:
    """Return the state of a process's diagram at a moment; every node and edge has one status class.

    Args:
        moment: the moment.
        states: the states of a workflow's steps, if the caller has read them.
        sketch: the sketch of a workflow; by default the sketch of its picture.
    """
    if not moment.is_workflow:
        return manager_state(moment)
    if states is None:
        states = step_states_of(moment)
    return workflow_state(moment, states, sketch or moment.drawing.sketch)


def manager_state(moment: ProcessMoment) -> DiagramState:
    """Return the state of a process manager's diagram."""
    instance, graph, taken = moment.instance, moment.graph, moment.taken
    nodes, edges = _still_possible(graph, instance)
    # Edges tell visited steps too: only some visits of a long history are read.
    ends = (
        end
        for one in graph.edges
        if one.id in taken
        for end in (one.source, one.target)
    )
    last = dict.fromkeys(ends, "done") | {run.node: run.status for run in moment.visits}
    visits = Counter(run.node for run in moment.visits)
    more = "" if moment.has_all_visits else "+"
    return DiagramState(
        {
            node.id: _node(node, last, _times(visits[node.id], more), nodes, instance)
            for node in graph.nodes
        },
        {edge.id: _edge(edge, taken, edges, instance.step) for edge in graph.edges},
    )


def mark_current_steps(state: DiagramState, moment: ProcessMoment) -> DiagramState:
    """Mark the current steps of the process on the diagram of a past moment."""
    if not moment.is_past:
        return state
    if not moment.is_workflow:
        current = {moment.present.step}
    else:
        rows = moment.present.step_runs.filter(finished_at=None, item=None)
        current = set(rows.exclude(kind=StepKind.JOIN).values_list("node", flat=True))
    return state.marked(current, HERE)


def accepted_events(graph: Graph, instance: ProcessInstance) -> list[Edge]:
    """Return the edges of events that the process accepts in its step, given its data."""
    if instance.status in ENDED:
        return []
    _, possible = reachable(graph, instance.step, instance.data)
    leaving = (edge for edge in graph.edges if edge.source == instance.step)
    return [edge for edge in leaving if edge.id in possible and edge.kind == "event"]


def _still_possible(
    graph: Graph, instance: ProcessInstance
) -> tuple[set[str], set[str]]:
    if instance.status in ENDED or not instance.step:
        return set(), set()
    return reachable(graph, instance.step, instance.data)


def _node(
    node: Node,
    last: Mapping[str, str],
    count: str,
    possible: set[str],
    instance: ProcessInstance,
) -> NodeState:
    name, status = node.id, last.get(node.id, "")
    if name == instance.step and instance.status not in ENDED:
        status = current_status(instance, status or "waiting")
    tone = (
        f"is-{status}" if status else "is-possible" if name in possible else "is-idle"
    )
    classes = (tone, "is-current") if name == instance.step else (tone,)
    title = f"{node.label}: {_status_text(status, name in possible)}"
    return NodeState(classes, count=count, title=title)


def _times(visits: int, more: str) -> str:
    return f"{visits}{more}\N{MULTIPLICATION SIGN}" if visits > 1 else ""


def _status_text(status: str, possible: bool) -> str:
    if status:
        return str(look(status).word)
    return _("still possible") if possible else _("not reached")


def _edge(
    edge: Edge, taken: set[str], possible: set[str], step: str
) -> tuple[str, ...]:
    if edge.id in taken:
        return ("is-done",)
    if edge.id not in possible:
        return ("is-off",)
    return ("is-next",) if edge.source == step else ("is-possible",)
