"""The page of a process at a revision; the current page also has deadlines and accepted events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from monitoring.base.differences import FieldChange, pair_fields
from monitoring.base.masking import data_of, names_of
from monitoring.base.moments import full_time
from monitoring.diagrams import DiagramState
from monitoring.process.diagram import accepted_events, diagram_of, mark_current_steps
from monitoring.process.history.history import history_of
from monitoring.process.parked_types import NOTHING, ParkedTypes, parked_types_of
from monitoring.process.repeated_steps import RepeatedSteps
from monitoring.process.revision.entries import HistoryPage
from monitoring.process.revision.moment import (
    ProcessMoment,
    process_moment,
    stored_drawing,
)
from monitoring.process.steps.elements import VisitFilters
from monitoring.process.steps.step_panel import StepPanel, step_panel
from monitoring.process.steps.step_states import StepState, step_states_of
from monitoring.process.steps.timeouts import Timeout, passed_deadlines, timeouts_of
from monitoring.process.steps.trouble import Trouble, trouble_of
from monitoring.process.steps.visits import (
    RunPage,
    RunRow,
    declined_visit,
    outcomes_of,
    run_page,
    table_rows,
)
from monitoring.process.steps.workflow import WorkflowView, workflow_view
from monitoring.process.subprocess import OpenedSubprocess
from monitoring.process.timeline import Timeline, timeline_of
from monitoring.queries.processes import process_rows
from orchestrator.definition.graph import Edge
from orchestrator.engine.operations import (
    Circumstances,
    ProcessOperation,
    on_processes,
    refusals_of,
)
from orchestrator.models import Definition, ProcessInstance, StepRun
from orchestrator.models.process_instance import ENDED
from orchestrator.snapshot import snapshot

Reader = AbstractBaseUser | AnonymousUser

LISTED = 100
"""The maximum number of visits of a process manager's steps that the page lists, the newest."""


@dataclass(frozen=True)
class HistoryPart:
    """Some rows of a process's history, and the facts that their buttons need.

    Args:
        moment: the moment at which the rows end.
        history: the rows.
        refusals: the refusal of each action; "" for an action that is possible.
        again: the steps that actions on a workflow would repeat; None for a past moment or a process manager.
    """

    moment: ProcessMoment
    history: HistoryPage
    refusals: dict[str, str]
    again: RepeatedSteps | None

    @property
    def instance(self) -> ProcessInstance:
        """The process as it was at the moment."""
        return self.moment.instance

    @property
    def place(self) -> str:
        """The query that leads to the moment; empty for now."""
        return f"at={self.moment.revision}{self.kept}" if self.moment.is_past else ""

    @property
    def kept(self) -> str:
        """The part of this page's query that links to other moments keep."""
        return ""


@dataclass(frozen=True, kw_only=True)
class InstancePage(HistoryPart):
    """The read model of the page.

    Args:
        state: the state of its diagram.
        actions: the actions on the whole process, each with a warning for its dialog.
        timeline: the timeline of its whole life.
        workflow: the open steps and children of a workflow; None for a process manager.
        trouble: the trouble that stops it. This field and the next ones, up to `declined`, are set on the current page.
        parked: the events that are parked for it.
        panel: the panel of the step that the user has chosen; None without one.
        passed_at: when the last deadline of a process manager's step passed.
        runs: the table of a workflow's visits.
        outcomes: the results of a workflow's last steps.
        declined: the visit whose refusal undid a workflow.
        state_now: the state of the diagram now, if the page shows it beside that of the moment.
        opened: the sub-process opened on the page, at the same moment.
    """

    state: DiagramState
    actions: dict[ProcessOperation, str]
    timeline: Timeline
    workflow: WorkflowView | None
    trouble: Trouble | None = None
    parked: ParkedTypes = NOTHING
    panel: StepPanel | None = None
    passed_at: datetime | None = None
    runs: RunPage | None = None
    outcomes: Sequence[RunRow] = ()
    declined: RunRow | None = None
    state_now: DiagramState | None = None
    opened: OpenedSubprocess | None = None

    @property
    def ended(self) -> bool:
        return self.instance.status in ENDED

    @property
    def present(self) -> ProcessInstance:
        """The process as it is now."""
        return self.moment.present

    @property
    def primary(self) -> str:
        """The name of the action that is most useful now; "" for none."""
        return "retry" if self.trouble is not None and self.trouble.fatal else ""

    @cached_property
    def accepted(self) -> list[tuple[Edge, str]]:
        """The events that the current step accepts, each with the label of the next step."""
        labels = self.moment.labels
        edges = accepted_events(self.moment.graph, self.instance)
        return [(edge, labels[edge.target]) for edge in edges]

    @cached_property
    def visits(self) -> list[RunRow]:
        """The newest visits of a process manager's steps."""
        return table_rows(self.moment.visits[-LISTED:], self.moment)

    @property
    def more_visits(self) -> bool:
        """Whether there are older visits than the listed ones."""
        return len(self.moment.visits) > LISTED

    @property
    def visit(self) -> StepRun | None:
        """The open visit of a process manager; None for the past."""
        of_manager = not (self.moment.is_workflow or self.moment.is_past)
        return self.moment.open_visit if of_manager else None

    @property
    def entered(self) -> datetime | None:
        """The beginning of the open visit."""
        return self.visit.started_at if self.visit is not None else None

    @property
    def deadline_passed(self) -> bool:
        """Whether the deadline of the open visit has passed, and is being carried out or has failed."""
        return self.visit is not None and bool(self.visit.owner or self.visit.error)

    @cached_property
    def timeouts(self) -> Sequence[Timeout]:
        """The future deadlines of the open visit; empty if the process has ended."""
        run, instance = self.visit, self.instance
        if run is None or instance.finished_at is not None:
            return ()
        return list(timeouts_of(run, instance, self.moment.labels, run.error))

    @property
    def happened(self) -> str:
        """The transition of the moment, in words."""
        if self.moment.checkpoint is None:
            return ""
        first = next((e.what for e in self.history.entries if e.is_moment), "")
        return first or self.moment.checkpoint.said

    @property
    def kept(self) -> str:
        """The part of this page's query that links to other moments keep."""
        beside = "&beside=now" if self.state_now is not None else ""
        return f"{beside}{self.kept_sub}"

    @property
    def kept_sub(self) -> str:
        """The part of the query that names the opened sub-process."""
        return f"&sub={quote(self.opened.asked)}" if self.opened else ""

    @property
    def later(self) -> str:
        """The query that leads to the transition after a past moment, or to now if that was the last one."""
        after = self.moment.later
        return f"at={after}{self.kept}" if after else self.kept_sub

    @property
    def shown_now(self) -> DiagramState:
        """The diagram as it is now."""
        return self.state_now or self.state

    @property
    def said(self) -> str:
        """The moment in words."""
        if self.moment.at is None:
            return _("Now, live") if self.timeline.live else _("Now")
        numbers = {"number": self.moment.revision, "all": self.present.revision}
        words = _("Transition %(number)s of %(all)s") % numbers
        return f"{words}, {full_time(self.moment.at)}: {self.happened}"

    @property
    def compared(self) -> list[FieldChange]:
        """The data of the moment beside the data of now, every field."""
        hidden = names_of(self.instance.definition)
        both = pair_fields(self.instance.data, self.present.data)
        return [FieldChange(*pair).masked(hidden) for pair in both]

    @property
    def data(self) -> Any:
        """The data of the moment, with secrets masked."""
        return data_of(self.instance)

    @property
    def fields(self) -> list[tuple[str, Any]]:
        """The fields of the data. A template's `data.items` would be the field of that name."""
        return list(self.data.items())

    @property
    def has_secrets(self) -> bool:
        return bool(names_of(self.instance.definition))


def instance_history(
    pk: UUID, user: Reader, before: int | None, at: int | None
) -> HistoryPart:
    """Read some rows of a process's history; 404 without such a process."""
    with snapshot():
        moment = process_moment(get_object_or_404(process_rows(), pk=pk), at)
        return _history(moment, Circumstances(moment.present), user, before)


def _history(
    moment: ProcessMoment, process: Circumstances, user: Reader, before: int | None
) -> HistoryPart:
    refusals, again = refusals_of(process, user), None
    if moment.is_past:
        refusals = dict.fromkeys(refusals, _("You look at the past."))
    elif moment.is_workflow:
        again = RepeatedSteps(moment.present, moment.labels)
    return HistoryPart(moment, history_of(moment, before), refusals, again)


def instance_page(
    pk: UUID,
    user: Reader,
    before: int | None = None,
    filters: VisitFilters | None = None,
    at: int | None = None,
    beside: bool = False,
) -> InstancePage:
    """Read the page of a process; 404 without such a process.

    All parts come from one snapshot: the engine would refuse a button of a newer step under an older revision.

    Args:
        pk: the process id.
        user: the reader.
        before: the history has only transitions below this one.
        filters: the filters of its table of steps.
        at: the number of a transition; None, or a number without a transition, for now.
        beside: whether it shows the current diagram beside the diagram of the past.
    """
    rows = process_rows("owner", "parent")
    known = Definition.objects.filter(processinstance=pk).defer("graph")
    stored_drawing(get_object_or_404(known))  # cached; drawing may take a moment
    with snapshot():
        moment = process_moment(get_object_or_404(rows, pk=pk), at)
        page = _page(moment, user, before, filters or VisitFilters())
        if beside and moment.is_past:
            page = replace(page, state_now=diagram_of(moment.now))
        return page


def _page(
    moment: ProcessMoment, user: Reader, before: int | None, filters: VisitFilters
) -> InstancePage:
    process = Circumstances(moment.present)
    part = _history(moment, process, user, before)
    states = step_states_of(moment) if moment.is_workflow else {}
    page = InstancePage(
        **vars(part),
        state=mark_current_steps(diagram_of(moment, states), moment),
        actions=_actions(process, part),
        timeline=timeline_of(moment),
        workflow=workflow_view(moment, states) if moment.is_workflow else None,
        trouble=None if moment.is_past else trouble_of(moment.present),
    )
    return page if moment.is_past else _with_now(page, states, filters)


def _actions(process: Circumstances, part: HistoryPart) -> dict[ProcessOperation, str]:
    again = part.again if not part.refusals["retry"] else None
    return {
        action: again.of_failed if again and name == "retry" else ""
        for name, action in on_processes().items()
        if action.on_whole and action.concerns(process)
    }


def _with_now(
    page: InstancePage, states: Mapping[str, StepState], filters: VisitFilters
) -> InstancePage:
    """Add the parts that only now has."""
    moment = page.moment
    parked, panel = parked_types_of(moment), step_panel(moment, states, filters.step)
    page = replace(page, state=page.state.marked({filters.step}, "is-chosen"))
    if moment.is_workflow:
        return replace(
            page,
            parked=parked,
            panel=panel,
            runs=run_page(moment, states, filters),
            outcomes=outcomes_of(moment),
            declined=declined_visit(moment),
        )
    run = page.visit
    passed_at = passed_deadlines([run]).get(run.pk) if run else None
    return replace(page, parked=parked, panel=panel, passed_at=passed_at)
