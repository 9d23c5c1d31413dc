"""Everything the page of one instance shows, as of one read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from monitoring.buttons import Button, header_buttons
from monitoring.diagrams import DiagramState, Drawing, drawing_of
from monitoring.masking import data_of, names_of
from monitoring.moments import in_full
from monitoring.queries.graphs import graph_of, labels_of, start_of
from monitoring.queries.instance.diagram import (
    accepted_now,
    beside_now,
    instance_state,
)
from monitoring.queries.instance.done_again import DoneAgain
from monitoring.queries.instance.entries import MISSING, FieldChange, HistoryPage
from monitoring.queries.instance.history import history_of
from monitoring.queries.instance.parked import NOTHING, Parked, parked_of
from monitoring.queries.instance.past import (
    PastMoment,
    all_of,
    moment_of,
    newest_runs,
    runs_then,
)
from monitoring.queries.instance.past_ledger import ledger_then
from monitoring.queries.instance.stays import (
    VisitRow,
    is_past,
    timeouts_now,
    visit_row,
)
from monitoring.queries.instance.step_panel import StepPanel, step_panel
from monitoring.queries.instance.subprocess import OpenedSubprocess
from monitoring.queries.instance.taken import looked_at_in_part, taken_edges
from monitoring.queries.instance.timeline import Timeline, timeline_of
from monitoring.queries.instance.trouble import Trouble, trouble_of
from monitoring.queries.instance.versions import versions_of
from monitoring.queries.instance.visits import RunFilters
from monitoring.queries.instance.workflow import (
    WorkflowThen,
    WorkflowView,
    painted,
    workflow_then,
    workflow_view,
)
from monitoring.queries.instance.workflow_history import workflow_history_of
from monitoring.queries.processes import processes
from monitoring.queries.timeouts import Timeout, passed_of
from orchestrator.definition.graph import Edge, Graph
from orchestrator.engine.operations import Circumstances, refusals_of
from orchestrator.models import Definition, ProcessInstance, StepRun
from orchestrator.models.process_instance import ENDED
from orchestrator.snapshot import snapshot

LISTED = 100
"""Visits of steps that the page lists, the newest."""


@dataclass(frozen=True)
class InstancePage:
    """The read model of the page."""

    instance: ProcessInstance
    drawing: Drawing
    state: DiagramState
    ledger: HistoryPage
    refusals: dict[str, str]
    buttons: list[Button]
    step_label: str
    timeline: Timeline
    visits: Sequence[VisitRow] = ()
    accepted: Sequence[tuple[Edge, str]] = ()
    deadline: datetime | None = None
    deadline_passed: bool = False
    remaining: timedelta | None = None
    entered: datetime | None = None
    trouble: Trouble | None = None
    more_trouble: int = 0
    parked: Parked = NOTHING
    workflow: WorkflowView | None = None
    moment: PastMoment | None = None
    """The moment that is looked at; None for now. What else is here is of that moment, but for the timeline."""
    workflow_then: WorkflowThen | None = None
    open_run: StepRun | None = None
    """Of a process manager: the visit of the step in which it is now."""
    again: DoneAgain | None = None
    """Of a workflow: what its actions would do again."""
    panel: StepPanel | None = None
    """What is said of the step that was chosen; no other opens by itself."""
    timeouts: Sequence[Timeout] = ()
    """Of a process manager: the deadlines of that visit that have not passed yet."""
    passed_at: datetime | None = None
    """When the last of its deadlines passed that was carried out."""
    more_visits: bool = False
    """Whether there were visits before those that are listed."""
    state_now: DiagramState | None = None
    """The diagram as it is now, where that is shown beside the one of the moment."""
    drawing_now: Drawing | None = None
    """The picture of now: that of another version where the process has gone over to one since."""
    opened: OpenedSubprocess | None = None
    """The sub-process that is opened on the page, as of the same moment."""

    @property
    def ended(self) -> bool:
        return self.instance.status in ENDED

    @property
    def present(self) -> ProcessInstance:
        """The process as it is now."""
        return self.moment.present if self.moment is not None else self.instance

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
        if self.moment is None:
            return ""
        return f"at={self.moment.revision}{self.kept}"

    @property
    def kept(self) -> str:
        """What queries that lead to other moments keep of this one."""
        beside = "&beside=now" if self.state_now is not None else ""
        return f"{beside}{self.kept_sub}"

    @property
    def kept_sub(self) -> str:
        """The same of the sub-process that is opened."""
        return f"&sub={quote(self.opened.asked)}" if self.opened else ""

    @property
    def edges_in_part(self) -> int:
        """How many transitions at each end were looked at for the edges that it took; 0 if it was all of them."""
        return looked_at_in_part(self.present)

    @property
    def shown_now(self) -> DiagramState:
        """The diagram as it is now."""
        return self.state_now or self.state

    @property
    def picture_now(self) -> Drawing:
        """The picture of now."""
        return self.drawing_now or self.drawing

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
        hidden = names_of(self.instance.definition)
        return [
            FieldChange(name, then.get(name, MISSING), now.get(name, MISSING)).masked(
                hidden
            )
            for name in names
        ]

    @property
    def data(self) -> Any:
        """The data of the moment, without what is secret in it."""
        return data_of(self.instance)

    @property
    def has_secrets(self) -> bool:
        return bool(names_of(self.instance.definition))


def instance_page(
    pk: UUID,
    user: AbstractBaseUser | AnonymousUser,
    before: int | None = None,
    filters: RunFilters | None = None,
    at: int | None = None,
    beside: bool = False,
) -> InstancePage:
    """Reads the page of one instance; 404 when there is none.

    As of one moment: a button of a newer step under an older revision would be refused.

    Args:
        pk: its process id.
        user: who reads it.
        before: only transitions below this one are in its ledger.
        filters: what its table of steps is narrowed to.
        at: the transition after which it is shown as it was then; None, or one that never was, for now.
        beside: whether its diagram of now is shown beside that of then.
    """
    rows = processes("owner", "parent")
    known = Definition.objects.filter(processinstance=pk).defer("graph")
    definition = get_object_or_404(known)
    drawing_of(graph_of(definition), definition.fingerprint)  # kept; may take a moment
    with snapshot():
        instance = get_object_or_404(rows, pk=pk)
        moment = moment_of(instance, at) if at is not None else None
        if moment is not None:
            shown = page_then(moment, user, before)
            if not beside:
                return shown
            drawing = drawing_of(graph_of(definition), definition.fingerprint)
            now = state_now(instance, drawing)
            return replace(shown, state_now=now, drawing_now=drawing)
        return _page_now(instance, user, before, filters or RunFilters())


def _page_now(
    instance: ProcessInstance,
    user: AbstractBaseUser | AnonymousUser,
    before: int | None,
    filters: RunFilters,
) -> InstancePage:
    graph = graph_of(instance.definition)
    labels = versions_of(instance).labels(labels_of(instance.definition))
    trouble, more = trouble_of(instance)
    process = Circumstances(instance)
    refusals = refusals_of(process, user)
    page = partial(
        InstancePage,
        instance,
        trouble=trouble,
        more_trouble=more,
        parked=parked_of(instance, graph, labels),
        refusals=refusals,
        step_label=labels.get(instance.step, instance.step),
        panel=step_panel(instance, labels, filters.step),
    )
    buttons = partial(header_buttons, process, refusals, primary=_primary(trouble))
    if instance.definition.is_workflow:
        view, again = workflow_view(instance, filters), DoneAgain(instance, labels)
        return page(
            view.drawing,
            view.state,
            workflow_history_of(instance, labels, before),
            buttons=buttons(
                warnings={} if refusals["retry"] else {"retry": again.of_failed}
            ),
            timeline=timeline_of(instance, labels),
            workflow=view,
            again=again,
        )
    runs = newest_runs(instance)
    open_run = next((run for run in reversed(runs) if run.finished_at is None), None)
    return page(
        drawing_of(graph, instance.definition.fingerprint),
        instance_state(graph, instance, runs, taken_edges(instance)),
        history_of(instance, start_of(graph), labels, before, all_of(runs)),
        buttons=buttons(),
        timeline=timeline_of(instance, labels, newest=runs),
        visits=[visit_row(run, labels, instance) for run in runs[-LISTED:]],
        accepted=[(one, labels[one.target]) for one in accepted_now(graph, instance)],
        deadline=open_run.wake_at if open_run and not instance.finished_at else None,
        deadline_passed=open_run is not None and is_past(open_run),
        remaining=open_run.remaining if open_run and instance.paused_at else None,
        entered=open_run.started_at if open_run else None,
        open_run=open_run,
        timeouts=timeouts_now(open_run, instance, labels),
        passed_at=passed_of([open_run]).get(open_run.pk) if open_run else None,
        more_visits=len(runs) > LISTED,
    )


def state_now(instance: ProcessInstance, drawing: Drawing) -> DiagramState:
    """What its diagram shows now, and nothing else of its page."""
    if instance.definition.is_workflow:
        return painted(instance, drawing.sketch)
    graph, taken = graph_of(instance.definition), taken_edges(instance)
    return instance_state(graph, instance, newest_runs(instance), taken)


def page_then(
    moment: PastMoment, user: AbstractBaseUser | AnonymousUser, before: int | None
) -> InstancePage:
    """The page as it was at a moment; its buttons say that they act on now.

    Args:
        moment: the moment.
        user: who reads it.
        before: only transitions below this one are in its ledger.
    """
    then, definition = moment.then, moment.definition
    graph = graph_of(definition)
    labels = {
        **versions_of(moment.present).labels(labels_of(definition)),
        **labels_of(definition),
    }
    view = workflow_then(moment) if definition.is_workflow else None
    runs = runs_then(moment) if view is None else []
    process = Circumstances(moment.present)
    refusals = dict.fromkeys(refusals_of(process, user), _("You look at the past."))
    return InstancePage(
        then,
        drawing_of(graph, definition.fingerprint),
        beside_now(view.state if view else _state_then(graph, moment, runs), moment),
        ledger_then(moment, start_of(graph), labels, before),
        refusals,
        header_buttons(process, refusals),
        labels.get(then.step, then.step),
        timeline_of(moment.present, labels, moment),
        visits=[visit_row(run, labels, then, moment.at) for run in runs[-LISTED:]],
        accepted=[(edge, labels[edge.target]) for edge in accepted_now(graph, then)],
        entered=next(
            (run.started_at for run in runs[::-1] if not run.finished_at), None
        ),
        moment=moment,
        workflow_then=view,
        more_visits=len(runs) > LISTED,
    )


def _state_then(
    graph: Graph, moment: PastMoment, runs: Sequence[StepRun]
) -> DiagramState:
    taken = taken_edges(moment.present, until=moment.revision)
    return instance_state(graph, moment.then, runs, taken)


def _primary(trouble: Trouble | None) -> str:
    """The name of the action that is wanted most."""
    return "retry" if trouble is not None and trouble.fatal else ""
