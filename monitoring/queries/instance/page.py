"""Everything the page of one instance shows, as of one read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring.buttons import Button, header_buttons
from monitoring.diagrams import DiagramState, Drawing, drawing_of
from monitoring.moments import in_full
from monitoring.queries.graphs import graph_of, labels_of
from monitoring.queries.instance.diagram import (
    accepted_now,
    beside_now,
    current_status,
    instance_state,
)
from monitoring.queries.instance.entries import MISSING, FieldChange, HistoryPage
from monitoring.queries.instance.history import history_of
from monitoring.queries.instance.parked import Parked, parked_of
from monitoring.queries.instance.past import PastMoment, moment_of, runs_then
from monitoring.queries.instance.past_ledger import ledger_then
from monitoring.queries.instance.taken import taken_edges
from monitoring.queries.instance.timeline import Timeline, timeline_of
from monitoring.queries.instance.trouble import Trouble, trouble_of
from monitoring.queries.instance.visits import RunFilters
from monitoring.queries.instance.workflow import (
    WorkflowThen,
    WorkflowView,
    workflow_then,
    workflow_view,
)
from monitoring.queries.instance.workflow_history import workflow_history_of
from orchestrator.definition.graph import Edge, Graph
from orchestrator.engine.operations import Circumstances, refusals_of
from orchestrator.models import Definition, ProcessInstance, StepRun
from orchestrator.models.process_instance import ENDED
from orchestrator.snapshot import snapshot

RUNS = 500
"""Visits of steps that the page looks at."""


@dataclass(frozen=True)
class VisitRow:
    """One stay in a step."""

    run: StepRun
    label: str
    duration: timedelta
    open: bool
    status: str


@dataclass(frozen=True)
class InstancePage:
    """The read model of the page."""

    instance: ProcessInstance
    drawing: Drawing
    state: DiagramState
    visits: list[VisitRow]
    ledger: HistoryPage
    accepted: list[tuple[Edge, str]]
    deadline: datetime | None
    deadline_passed: bool
    remaining: timedelta | None
    entered: datetime | None
    trouble: Trouble | None
    more_trouble: int
    parked: Parked
    refusals: dict[str, str]
    buttons: list[Button]
    step_label: str
    timeline: Timeline
    workflow: WorkflowView | None = None
    moment: PastMoment | None = None
    """The moment that is looked at; None for now. What else is here is of that moment, but for the timeline."""
    workflow_then: WorkflowThen | None = None

    @property
    def ended(self) -> bool:
        return self.instance.status in ENDED

    @property
    def present(self) -> ProcessInstance:
        """The process as it is now."""
        return self.moment.present if self.moment is not None else self.instance

    @property
    def is_workflow(self) -> bool:
        return self.instance.definition.kind == Definition.Kind.WORKFLOW

    @property
    def number_open(self) -> int:
        """Open steps of a workflow."""
        shown = self.workflow or self.workflow_then
        return shown.number_open if shown is not None else 0

    @property
    def happened(self) -> str:
        """What moved the process to the moment that is looked at."""
        if self.moment is None:
            return ""
        first = next((e.what for e in self.ledger.entries if e.is_moment), "")
        return first or self.moment.checkpoint.said

    @property
    def place(self) -> str:
        """The query that leads to the moment; empty for now."""
        return f"at={self.moment.revision}" if self.moment is not None else ""

    @property
    def said(self) -> str:
        """The moment in words."""
        if self.moment is None:
            return _("Now, live") if self.timeline.live else _("Now")
        numbers = {"number": self.moment.revision, "all": self.present.revision}
        words = _("Transition %(number)s of %(all)s") % numbers
        return f"{words}, {in_full(self.moment.at)}: {self.happened}"

    @property
    def compared(self) -> list[FieldChange]:
        """The data of the moment beside that of now, every field."""
        then, now = self.instance.data, self.present.data
        names = [*now, *(name for name in then if name not in now)]
        return [
            FieldChange(name, then.get(name, MISSING), now.get(name, MISSING))
            for name in names
        ]


def instance_page(
    pk: UUID,
    user: AbstractBaseUser | AnonymousUser,
    before: int | None = None,
    filters: RunFilters | None = None,
    at: int | None = None,
) -> InstancePage:
    """Reads the page of one instance; 404 when there is none.

    As of one moment: a button of a newer step under an older revision would be refused.

    Args:
        pk: its process id.
        user: who reads it.
        before: only transitions below this one are in its ledger.
        filters: what its table of steps is narrowed to.
        at: the transition after which it is shown as it was then; None, or one that never was, for now.
    """
    rows = ProcessInstance.objects.select_related("definition", "owner", "parent")
    rows = rows.defer("definition__graph")
    definition = get_object_or_404(rows, pk=pk).definition
    drawing_of(graph_of(definition), definition.fingerprint)  # kept; may take a moment
    with snapshot():
        instance = get_object_or_404(rows, pk=pk)
        moment = moment_of(instance, at) if at is not None else None
        if moment is not None:
            return page_then(moment, user, before)
        if definition.kind == Definition.Kind.WORKFLOW:
            return _of_workflow(instance, user, before, filters or RunFilters())
        return _of_process_manager(instance, user, before)


def _of_workflow(
    instance: ProcessInstance,
    user: AbstractBaseUser | AnonymousUser,
    before: int | None,
    filters: RunFilters,
) -> InstancePage:
    labels, view = labels_of(instance.definition), workflow_view(instance, filters)
    trouble, more = trouble_of(instance)
    process = Circumstances(instance)
    refusals = refusals_of(process, user)
    return InstancePage(
        instance,
        view.drawing,
        view.state,
        visits=[],
        ledger=workflow_history_of(instance, labels, before),
        accepted=[],
        deadline=None,
        deadline_passed=False,
        remaining=None,
        entered=None,
        trouble=trouble,
        more_trouble=more,
        parked=parked_of(instance, graph_of(instance.definition), labels),
        refusals=refusals,
        buttons=header_buttons(process, refusals, primary=_primary(trouble)),
        step_label=labels.get(instance.step, instance.step),
        timeline=timeline_of(instance, labels),
        workflow=view,
    )


def _of_process_manager(
    instance: ProcessInstance,
    user: AbstractBaseUser | AnonymousUser,
    before: int | None,
) -> InstancePage:
    graph, labels = graph_of(instance.definition), labels_of(instance.definition)
    runs = list(instance.step_runs.order_by("-pk")[:RUNS])[::-1]
    open_run = next((run for run in reversed(runs) if run.finished_at is None), None)
    trouble, more = trouble_of(instance)
    process = Circumstances(instance)
    refusals = refusals_of(process, user)
    return InstancePage(
        instance,
        drawing_of(graph, instance.definition.fingerprint),
        instance_state(graph, instance, runs, taken_edges(instance)),
        [_visit(run, labels, instance) for run in runs],
        history_of(instance, _start(graph), labels, before),
        [(edge, labels[edge.target]) for edge in accepted_now(graph, instance)],
        open_run.wake_at if open_run and not instance.finished_at else None,
        open_run is not None and is_past(open_run),
        open_run.remaining if open_run and instance.paused_at else None,
        open_run.started_at if open_run else None,
        trouble,
        more,
        parked_of(instance, graph, labels),
        refusals,
        header_buttons(process, refusals, primary=_primary(trouble)),
        labels.get(instance.step, instance.step),
        timeline_of(instance, labels),
    )


def page_then(
    moment: PastMoment, user: AbstractBaseUser | AnonymousUser, before: int | None
) -> InstancePage:
    """The page as it was at a moment; its buttons say that they act on now.

    Args:
        moment: the moment.
        user: who reads it.
        before: only transitions below this one are in its ledger.
    """
    then, definition = moment.then, moment.present.definition
    graph, labels = graph_of(definition), labels_of(definition)
    workflow = definition.kind == Definition.Kind.WORKFLOW
    view = workflow_then(moment) if workflow else None
    runs = [] if workflow else runs_then(moment)
    process = Circumstances(moment.present)
    refusals = dict.fromkeys(refusals_of(process, user), _("You look at the past."))
    return InstancePage(
        then,
        drawing_of(graph, definition.fingerprint),
        beside_now(view.state if view else _state_then(graph, moment, runs), moment),
        [_visit(run, labels, then, moment.at) for run in runs],
        ledger_then(moment, _start(graph), labels, before),
        [(edge, labels[edge.target]) for edge in accepted_now(graph, then)],
        deadline=None,
        deadline_passed=False,
        remaining=None,
        entered=next(
            (run.started_at for run in runs[::-1] if not run.finished_at), None
        ),
        trouble=None,
        more_trouble=0,
        parked=Parked([], 0),
        refusals=refusals,
        buttons=header_buttons(process, refusals),
        step_label=labels.get(then.step, then.step),
        timeline=timeline_of(moment.present, labels, moment),
        moment=moment,
        workflow_then=view,
    )


@dataclass(frozen=True)
class LedgerPart:
    """Some rows of a ledger, and what their buttons need."""

    instance: ProcessInstance
    ledger: HistoryPage
    refusals: dict[str, str]
    moment: PastMoment | None = None

    @property
    def is_workflow(self) -> bool:
        return self.instance.definition.kind == Definition.Kind.WORKFLOW

    @property
    def place(self) -> str:
        """The query that leads to the moment; empty for now."""
        return f"at={self.moment.revision}" if self.moment is not None else ""


def instance_ledger(
    pk: UUID,
    user: AbstractBaseUser | AnonymousUser,
    before: int | None,
    at: int | None,
) -> LedgerPart:
    """Reads some rows of a process's ledger and nothing else; 404 when there is no such process."""
    rows = ProcessInstance.objects.select_related("definition")
    with snapshot():
        instance = get_object_or_404(rows.defer("definition__graph"), pk=pk)
        moment = moment_of(instance, at) if at is not None else None
        graph, labels = graph_of(instance.definition), labels_of(instance.definition)
        refusals = refusals_of(Circumstances(instance), user)
        if moment is not None:
            past = dict.fromkeys(refusals, _("You look at the past."))
            page = ledger_then(moment, _start(graph), labels, before)
            return LedgerPart(moment.then, page, past, moment)
        if instance.definition.kind == Definition.Kind.WORKFLOW:
            page = workflow_history_of(instance, labels, before)
        else:
            page = history_of(instance, _start(graph), labels, before)
        return LedgerPart(instance, page, refusals)


def _state_then(
    graph: Graph, moment: PastMoment, runs: Sequence[StepRun]
) -> DiagramState:
    taken = taken_edges(moment.present, until=moment.revision)
    return instance_state(graph, moment.then, runs, taken)


def is_past(run: StepRun) -> bool:
    """Whether a visit's deadline is being carried out, or could not be: what it waits for then is no deadline."""
    return bool(run.owner or run.error)


def _primary(trouble: Trouble | None) -> str:
    """The name of the action that is wanted most."""
    return "retry" if trouble is not None and trouble.fatal else ""


def _start(graph: Graph) -> str:
    return next((node.id for node in graph.nodes if node.kind == "start"), "")


def _visit(
    run: StepRun,
    labels: Mapping[str, str],
    instance: ProcessInstance,
    now: datetime | None = None,
) -> VisitRow:
    is_open = run.finished_at is None
    duration = (run.finished_at or now or timezone.now()) - run.started_at
    status = current_status(instance, run.status) if is_open else run.status
    return VisitRow(run, labels.get(run.node, run.node), duration, is_open, status)
