"""What the page of a workflow's instance shows beside what every instance shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.db.models.functions import Left, Right

from monitoring.diagrams import DiagramState, Drawing, drawing_of
from monitoring.diagrams.sketch import Sketch
from monitoring.diagrams.words import detail_of
from monitoring.masking import masked_text, names_of
from monitoring.queries.graphs import (
    attempts_of,
    choices_of,
    graph_of,
    labels_of,
    nodes_of,
)
from monitoring.queries.instance.elements import SHOWN
from monitoring.queries.instance.past import PastMoment
from monitoring.queries.instance.past_workflow import states_then
from monitoring.queries.instance.step_states import (
    MOST,
    StepState,
    step_states_of,
    visit_status,
)
from monitoring.queries.instance.taken import taken_edges
from monitoring.queries.instance.trouble import last_line
from monitoring.queries.instance.visits import (
    RunFilters,
    RunPage,
    beginning_of,
    run_page,
    worth_a_look,
)
from monitoring.queries.instance.workflow_diagram import workflow_state
from orchestrator.definition.graph import Graph, Node
from orchestrator.models import ProcessInstance, Status, StepKind, StepRun, StepStatus
from orchestrator.text import unpacked

SHOWN_NOW = 12
"""Open steps that the page says more about."""

ENDS = 6
"""Last steps whose results are shown together."""

CHILDREN = 20
"""Sub-processes that a page lists."""

CLOCKS = timedelta(minutes=10)
"""How far the clocks of machines may be apart."""


@dataclass(frozen=True)
class OpenStep:
    """A step that is going on: what it does or waits for, how far it is, what went wrong."""

    run: StepRun
    status: str
    label: str
    detail: str
    attempts: int
    error: str
    choices: tuple[str, ...]

    @property
    def progress(self) -> Mapping[str, Any]:
        return self.run.progress if isinstance(self.run.progress, dict) else {}

    @property
    def is_map(self) -> bool:
        return self.run.kind == StepKind.MAP

    @property
    def has_deadline(self) -> bool:
        return self._wakes and self.run.kind in (StepKind.WAIT, StepKind.ASK)

    @property
    def is_asleep(self) -> bool:
        waiting = self.run.status == StepStatus.WAITING
        return self._wakes and waiting and self.run.kind == StepKind.SLEEP

    @property
    def is_tried_again(self) -> bool:
        return self._wakes and self.run.status == StepStatus.RETRYING

    @property
    def deadline_passed(self) -> bool:
        """Whether its deadline is being carried out, or could not be."""
        return bool(self.run.owner or self.error)

    @property
    def _wakes(self) -> bool:
        return self.run.wake_at is not None or self.run.remaining is not None


@dataclass(frozen=True)
class EndResult:
    """The result of a last step, cut when it is long."""

    run: StepRun
    label: str
    text: str
    cut: bool = False


@dataclass(frozen=True)
class Declined:
    """The step because of which the process was undone, and what it said."""

    label: str
    error: str


class OpenThen(NamedTuple):
    """A step that was going on at a moment, since when, and the sub-process that it had started by then."""

    label: str
    status: str
    since: datetime | None = None
    child: ProcessInstance | None = None


@dataclass(frozen=True)
class WorkflowThen:
    """The read model of a workflow's instance at a moment of its past.

    Args:
        drawing: the picture.
        state: how it looked.
        open: steps that were going on.
        more_open: how many others there were.
        counts: how many steps had which status.
        steps: how many the workflow has.
        children: the newest sub-processes that had been started, but for those of the open steps.
    """

    drawing: Drawing
    state: DiagramState
    open: Sequence[Any]
    more_open: int
    counts: list[tuple[str, int]]
    steps: int
    children: list[ProcessInstance]

    @property
    def number_open(self) -> int:
        """Open steps worth a look, all of them."""
        return len(self.open) + self.more_open


@dataclass(frozen=True)
class WorkflowView(WorkflowThen):
    """That of now, which tells more of each open step."""

    runs: RunPage
    outcomes: list[EndResult]
    declined: Declined | None


def workflow_then(moment: PastMoment) -> WorkflowThen:
    """Reads how a workflow stood at a moment of its past."""
    definition = moment.definition
    graph, labels = graph_of(definition), labels_of(definition)
    drawing = drawing_of(graph, definition.fingerprint)
    taken = taken_edges(moment.present, until=moment.revision)
    states = states_then(moment, graph, taken)
    attempts = attempts_of(definition)
    state = workflow_state(graph, drawing.sketch, moment.then, states, taken, attempts)
    going_on = [name for name, step in states.items() if step.open]
    begun = _begun_by(moment) if going_on else {}
    shown = [
        OpenThen(labels.get(name, name), states[name].status, *begun.get(name, ()))
        for name in going_on[:SHOWN_NOW]
    ]
    return WorkflowThen(
        drawing,
        state,
        shown,
        len(going_on) - len(shown),
        _counts(graph, states),
        len(graph.nodes),
        children_of(moment.present, [one.child for one in shown], moment.at),
    )


def _begun_by(
    moment: PastMoment,
) -> dict[str, tuple[datetime, ProcessInstance | None]]:
    """Of the steps that were open at a moment: since when, and the sub-processes that they had started."""
    rows = moment.present.step_runs.filter(item=None, entered__lte=moment.revision)
    rows = rows.exclude(left__lte=moment.revision).order_by("pk")
    # With the process, which Django asks each row for.
    named = ("instance", "node", "started_at", "child__name", "child__started_at")
    rows = rows.select_related("child").only(*named)
    return {
        moment.name_then(run.node): (run.started_at, _then_started(run, moment))
        for run in rows[:MOST]
    }


def _then_started(run: StepRun, moment: PastMoment) -> ProcessInstance | None:
    """The sub-process of a visit, if it had been started by a moment."""
    child = run.child
    return child if child is not None and child.started_at <= moment.at else None


def painted(
    instance: ProcessInstance,
    sketch: Sketch,
    states: Mapping[str, StepState] | None = None,
) -> DiagramState:
    """What the diagram of a workflow shows when its steps stand so; by default as they stand now."""
    if states is None:
        states = step_states_of(instance)
    graph, taken = graph_of(instance.definition), taken_edges(instance)
    attempts = attempts_of(instance.definition)
    return workflow_state(graph, sketch, instance, states, taken, attempts)


def open_steps_of(
    instance: ProcessInstance, states: Mapping[str, StepState], most: int = SHOWN_NOW
) -> tuple[list[OpenStep], int]:
    """The open steps worth a look, those that need a person first, and how many there are beyond `most`."""
    nodes, attempts = nodes_of(instance.definition), attempts_of(instance.definition)
    found = list(_open_steps(instance)[: most + 1])
    more = _open_steps(instance).count() - most if len(found) > most else 0
    shown = found[:most]
    return [
        _open_step(run, states, nodes, attempts(run.node), instance) for run in shown
    ], max(more, 0)


def workflow_view(instance: ProcessInstance, filters: RunFilters) -> WorkflowView:
    """Reads what is special to a workflow's page."""
    graph, labels = graph_of(instance.definition), labels_of(instance.definition)
    drawing = drawing_of(graph, instance.definition.fingerprint)
    states = step_states_of(instance)
    state = painted(instance, drawing.sketch, states)
    going_on, more = open_steps_of(instance, states)
    nodes = nodes_of(instance.definition)
    return WorkflowView(
        drawing,
        state,
        going_on,
        more,
        _counts(graph, states),
        len(graph.nodes),
        children_of(instance, [step.run.child for step in going_on]),
        run_page(
            instance,
            labels,
            states,
            filters,
            drawing.group(filters.group),
            of_map=filters.step in nodes and nodes[filters.step].kind == "map",
        ),
        _outcomes(instance, graph, labels) if instance.finished_at else [],
        _declined(instance, labels) if instance.status == Status.CANCELLED else None,
    )


def _open_steps(instance: ProcessInstance) -> QuerySet[StepRun]:
    """The open visits worth a look, those that need a person first."""
    rows = worth_a_look(StepRun.objects.filter(instance=instance))
    order = [
        When(status=StepStatus.FAILED, then=0),
        When(kind=StepKind.ASK, then=1),
        When(status=StepStatus.RETRYING, then=2),
        When(status=StepStatus.RUNNING, then=3),
    ]
    urgency = Case(*order, default=Value(4), output_field=IntegerField())
    rows = rows.defer("result", "saved", "element", "error")
    # The last line of a traceback says what happened; a long one is not read whole.
    tail = Left("error", 20_000)
    return (
        rows.annotate(error_text=tail).order_by(urgency, "pk").select_related("child")
    )


def _open_step(
    run: StepRun,
    states: Mapping[str, StepState],
    nodes: Mapping[str, Node],
    attempts: int,
    instance: ProcessInstance,
) -> OpenStep:
    node = nodes.get(run.node)
    choices = (
        choices_of(instance.definition, run.node) if run.kind == StepKind.ASK else ()
    )
    label, detail = (node.label, detail_of(node)) if node else (run.node, "")
    if detail.casefold() in label.casefold():
        detail = ""
    error = last_line(unpacked(run.error_text, run.text))  # type: ignore[attr-defined]  # annotated above
    status = visit_status(run, instance, states)
    return OpenStep(run, status, label, detail, attempts, error, choices)


def _outcomes(
    instance: ProcessInstance, graph: Graph, labels: Mapping[str, str]
) -> list[EndResult]:
    """The results of the steps that nothing follows."""
    leading = {edge.source for edge in graph.edges if edge.kind != "error"}
    ends = [node.id for node in graph.nodes if node.id not in leading][:ENDS]
    rows = StepRun.objects.filter(instance=instance, node__in=ends, item=None)
    rows = rows.filter(status__in=[StepStatus.DONE, StepStatus.SKIPPED])
    rows = rows.exclude(kind=StepKind.UNDO).exclude(result=None).order_by("pk")
    rows = rows.defer("result", "saved", "error")
    found = rows.annotate(result_text=beginning_of("result"))[:ENDS]
    hidden = names_of(instance.definition)
    return [
        EndResult(
            run,
            labels.get(run.node, run.node),
            masked_text(run.result_text, hidden),
            cut=len(run.result_text) > SHOWN,
        )
        for run in found
    ]


def _declined(instance: ProcessInstance, labels: Mapping[str, str]) -> Declined | None:
    rows = instance.step_runs.filter(declined=True, status=StepStatus.FAILED)
    rows = rows.annotate(tail=Right("error", SHOWN)).order_by("-pk")
    found = rows.values_list("node", "tail", "text").first()
    if found is None:
        return None
    node, error, text = found
    return Declined(labels.get(node, node), last_line(unpacked(error, text)))


def children_of(
    instance: ProcessInstance,
    shown: Iterable[ProcessInstance | None],
    until: datetime | None = None,
) -> list[ProcessInstance]:
    """The newest sub-processes, but for those that are shown elsewhere.

    Args:
        instance: whose parts they are.
        shown: those that are left out.
        until: only those that had been started by then.
    """
    rows = ProcessInstance.objects.filter(parent=instance.pk)
    rows = rows.exclude(pk__in=[one.pk for one in shown if one])
    if until is not None:
        rows = rows.filter(pk__lt=_key_after(until), started_at__lte=until)
    rows = rows.only("id", "name", "status", "correlation_key")
    return list(rows.order_by("-pk")[:CHILDREN])


def _key_after(at: datetime) -> UUID:
    """A key that nothing got which was started at a moment: keys begin with their time, of clocks that may differ."""
    return UUID(int=int((at + CLOCKS).timestamp() * 1_000) << 80)


def _counts(graph: Graph, states: Mapping[str, StepState]) -> list[tuple[str, int]]:
    """How many steps have which status, in the order of their urgency."""
    shown: Sequence[str] = (
        "failed", "retrying", "running", "ready", "waiting", "done", "skipped", "handled",
        "undone", "not_taken", "cancelled",
    )  # fmt: skip
    numbers = dict.fromkeys(shown, 0)
    for state in states.values():
        if state.status in numbers:
            numbers[state.status] += 1
    return [(name, number) for name, number in numbers.items() if number]
