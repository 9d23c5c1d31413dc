"""An instance on its diagram: where it is, what it took, what can still happen."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.utils.translation import gettext as _

from monitoring.diagrams import DiagramState, NodeState
from monitoring.queries.instance.past import VISITS, PastMoment
from monitoring.statuses import look
from orchestrator.definition.dataflow import reachable
from orchestrator.definition.graph import Edge, Graph
from orchestrator.models import ProcessInstance, StepKind, StepRun
from orchestrator.models.process_instance import ENDED

HERE = "has-now"
"""The class of a step in which the process is now, on a diagram of its past."""


def instance_state(
    graph: Graph, instance: ProcessInstance, runs: Sequence[StepRun], taken: set[str]
) -> DiagramState:
    """The state of the diagram: every node and every edge gets exactly one of its classes."""
    ended = instance.status in ENDED
    nodes, edges = _still_possible(graph, instance, ended)
    # Where it has been is told by the edges too: only some visits of a long history are looked at.
    ends = (
        end
        for one in graph.edges
        if one.id in taken
        for end in (one.source, one.target)
    )
    last = dict.fromkeys(ends, "done") | {run.node: run.status for run in runs}
    visits = Counter(run.node for run in runs)
    more = "+" if len(runs) >= VISITS else ""
    return DiagramState(
        {
            node.id: _node(
                node.id,
                node.label,
                last,
                _times(visits[node.id], more),
                nodes,
                instance,
            )
            for node in graph.nodes
        },
        {edge.id: _edge(edge, taken, edges, instance.step) for edge in graph.edges},
    )


def beside_now(state: DiagramState, moment: PastMoment) -> DiagramState:
    """The diagram of a moment, with a mark at the steps in which the process is now."""
    if not moment.present.definition.is_workflow:
        current = {moment.present.step}
    else:
        rows = moment.present.step_runs.filter(finished_at=None, item=None)
        current = set(rows.exclude(kind=StepKind.JOIN).values_list("node", flat=True))
    marked = {
        name: replace(state.nodes[name], classes=(*state.nodes[name].classes, HERE))
        for name in current & state.nodes.keys()
    }
    return DiagramState({**state.nodes, **marked}, state.edges)


def accepted_now(graph: Graph, instance: ProcessInstance) -> list[Edge]:
    """The edges of events that the instance would take now, given its data."""
    if instance.status in ENDED:
        return []
    _, possible = reachable(graph, instance.step, instance.data)
    leaving = (edge for edge in graph.edges if edge.source == instance.step)
    return [edge for edge in leaving if edge.id in possible and edge.kind == "event"]


def _still_possible(
    graph: Graph, instance: ProcessInstance, ended: bool
) -> tuple[set[str], set[str]]:
    if ended or not instance.step:
        return set(), set()
    return reachable(graph, instance.step, instance.data)


def _node(
    name: str,
    label: str,
    last: Mapping[str, str],
    count: str,
    possible: set[str],
    instance: ProcessInstance,
) -> NodeState:
    current = name == instance.step and instance.status not in ENDED
    status = (
        current_status(instance, last.get(name, "waiting"))
        if current
        else last.get(name, "")
    )
    tone = (
        f"is-{status}" if status else "is-possible" if name in possible else "is-idle"
    )
    classes = (tone, "is-current") if name == instance.step else (tone,)
    return NodeState(
        classes,
        count=count,
        title=f"{label}: {_said(status, name in possible)}",
    )


def _times(visits: int, more: str) -> str:
    return f"{visits}{more}\N{MULTIPLICATION SIGN}" if visits > 1 else ""


def _said(status: str, possible: bool) -> str:
    if status:
        return str(look(status).word)
    return _("still possible") if possible else _("not reached")


def current_status(instance: ProcessInstance, run: str) -> str:
    """What the current step shows: what stops the instance is more than that its step is waiting."""
    return (
        instance.status if instance.status in ("failed", "retrying", "paused") else run
    )


def _edge(
    edge: Edge, taken: set[str], possible: set[str], step: str
) -> tuple[str, ...]:
    if edge.id in taken:
        return ("is-done",)
    if edge.id not in possible:
        return ("is-off",)
    return ("is-next",) if edge.source == step else ("is-possible",)
