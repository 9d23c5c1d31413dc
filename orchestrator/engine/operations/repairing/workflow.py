"""Repairing a workflow: edits of results, skipped and redone steps, and events that never arrived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

from django.db.models import Q, QuerySet

from orchestrator.definition.codec import decode, encode_as
from orchestrator.definition.workflow.advance import Arrivals, Settled
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.change.workflows import following, redoing, retrying
from orchestrator.engine.change.workflows.following import decide
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.repairing.edits import OF_MANAGERS, Edit, EditKind
from orchestrator.engine.operations.repairing.plan import Edited, Effect, RepairPlan
from orchestrator.engine.operations.visits.skip import (
    check_can_be_skipped,
    read_result,
    result_form,
)
from orchestrator.engine.operations.visits.visit import (
    find_open_visit,
    follow_or_refuse,
    skip_visit,
)
from orchestrator.engine.sql import tables
from orchestrator.engine.storage.results import GIVEN, seal_result
from orchestrator.exceptions import OperationRefused
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.text import Text

GivenResult = tuple[StepRun, Any, Any]
"""A visit, and its new result as a value of its type and as JSON values."""

RUNS_BEFORE = (StepStatus.DONE, StepStatus.RUNNING, StepStatus.FAILED)


@dataclass
class WorkflowPlan(RepairPlan):
    """The steps and results of a workflow after a repair.

    Args:
        change: reads the process for the plan; `carry_out` writes it.
    """

    _: KW_ONLY
    change: WorkflowChange
    results: list[GivenResult] = field(default_factory=list)
    skipped: list[GivenResult] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    """The places of the edits that skip visits, by the keys of the visits."""
    redone: list[str] = field(default_factory=list)
    known: dict[str, Arrivals] = field(default_factory=dict)
    """The joins after the skipped steps."""
    given_up: set[str] = field(default_factory=set)
    """The steps that the skipped steps would cancel."""

    def plan_edit(self, place: int, edit: Edit) -> None:
        if edit.kind in OF_MANAGERS:
            raise OperationRefused(REFUSED[edit.kind])
        PLANNED[edit.kind](self, place, edit)

    def _plan_result(self, place: int, edit: Edit) -> None:
        run = StepRun.objects.filter(instance=self.change.instance, pk=edit.run).first()
        if run is None:
            raise OperationRefused("the process has no step run %(key)s", edit.target)
        OperationRefused.raise_for(why_no_result(self.change, run))
        form = result_form(self.change.plan[run.node], run)
        result = decode(form, edit.value)
        body = encode_as(form, result)
        seal_result(body)
        self.results.append((run, result, body))
        self.edited.append(Edited(_label(run), run.result, body))

    def _plan_skip(self, place: int, edit: Edit) -> None:
        run = find_open_visit(self.change.instance, edit.run)
        check_can_be_skipped(run)
        result, body = read_result(self.change, run, edit.value)
        self.skipped.append((run, result, body))
        self.places[run.pk] = place
        self.leaves.append(run.node)
        self.edited.append(Edited(_label(run), None, body))

    def _plan_redo(self, place: int, edit: Edit) -> None:
        OperationRefused.raise_for(redoing.why_no_redo(self.change, edit.target))
        if any(run.node == edit.target for run, *_ in self.results):
            raise OperationRefused(
                "the result of %(step)s is edited: one or the other", edit.target
            )
        self.redone.append(edit.target)
        self.stands.append(edit.target)
        self.effects.append(_step_effect(edit.target, self.change, again=True))

    def _plan_retry(self, place: int, edit: Edit) -> None:
        skipped = [one.run for one in self.edits if one.kind == EditKind.SKIP]
        rows = retrying.troubled_visits(self.change).exclude(pk__in=skipped).order_by()
        self.again = True
        names = sorted(set(rows.values_list("node", flat=True).distinct()))
        known = [name for name in names if name in self.change.plan.vertices]
        self.effects += [_step_effect(name, self.change, again=True) for name in known]

    def _plan_event(self, place: int, edit: Edit) -> None:
        self.read_event(
            self.change.instance.name, awaited_events(self.change.plan), edit
        )

    def _look_ahead(self, run: StepRun, result: Any) -> None:
        """Adds the steps that would start after a skipped step and the steps skipped before it.

        Raises:
            Exception: no link fits the result, or a predicate raises an error.
        """
        if run.kind in (StepKind.ITEM, StepKind.UNDO) or run.redo:
            return

        def look(names: Sequence[str]) -> dict[str, Arrivals]:
            new = [name for name in names if name not in self.known]
            known = tables.joins.of(self.change.instance.pk, new) if new else {}
            for name, row in known.items():
                over = row.kind != StepKind.JOIN or row.finished_at is not None
                self.known[name] = following.arrivals_of(row, over=over)
            return {name: self.known[name] for name in names if name in self.known}

        found = decide(self.change, Settled(run.node, run.visit, "done", result), look)
        self.known |= found.joins
        self.given_up |= {*found.given_up, *found.caught}
        begun = [name for name, _ in found.entered]
        self.stands += begun
        self.effects += _step_effects(begun, self.change)

    def carry_out(self, press: Press) -> dict[str, Any]:
        change = self.change
        for run, _, body in self.results:
            redoing.set_result(change, run, body, seal_result(body)["checksum"])
        if self.again:
            left = [run.pk for run, *_ in self.skipped]
            retrying.try_steps_again(change, left)
            retrying.try_events_again(change)
        _skip(change, self.skipped)
        for step in self.redone:
            redoing.begin_redo(change, step, "wanted by an operator", limit=None)
        self.add_events(change, press)
        change.write()
        if self.again:
            retrying.try_parents_again(press.process, press.cause, press.now)
        return {"results": [[one.of, one.before, one.after] for one in self.edited]}


def plan_workflow_repair(change: WorkflowChange, edits: list[Edit]) -> WorkflowPlan:
    """Return the plan of edits to a workflow; planning does not write `change`."""
    plan = WorkflowPlan(edits, change=change)
    plan.plan_each()
    plan.skipped.sort(key=lambda given: given[0].pk)
    for run, result, _ in plan.skipped:
        try:
            if run.node in plan.given_up:
                raise OperationRefused(CANCELLED.filled(run.node))
            follow_or_refuse(run, partial(plan._look_ahead, run, result))
        except OperationRefused as refused:
            plan.refuse(plan.places[run.pk], refused)
    return plan


CANCELLED = Text("%(step)s would be cancelled by another edit")


REFUSED = {
    EditKind.DATA: Text(
        "a workflow keeps the input it started with: edit the results of its steps, or restart it"
    ),
    EditKind.MOVE: Text(
        "a workflow is where its graph leads: skip or redo steps, or resume it from a checkpoint"
    ),
    EditKind.SKIP_COMMAND: Text("a workflow issues no commands"),
}


def why_no_result(change: WorkflowChange, run: StepRun) -> str:
    """Return why a person cannot edit the result of a visit; "" if they can."""
    vertex = change.plan.vertices.get(run.node)
    if vertex is None:
        return Text("the running code has no step %(step)s", run.node)
    if vertex.step.kind == "sleep":
        return Text("%(step)s lets time pass: there is no result", run.node)
    if run.kind == StepKind.MAP:
        return Text(
            "%(step)s stands for all its elements: edit theirs, one by one", run.node
        )
    rows = change.instance.step_runs.filter(node=run.node)
    if rows.filter(finished_at=None, redo=True).exists():
        return Text("%(step)s is being redone already", run.node)
    if run.status not in GIVEN or run.kind == StepKind.UNDO:
        return Text("%(step)s has given no result in this visit", run.node)
    return _why_not_last(rows, run)


def _why_not_last(rows: QuerySet[StepRun], run: StepRun) -> str:
    """Why the result of a visit does not count; "" if it counts. `rows` are all visits of its step."""
    given = rows.filter(status__in=GIVEN).exclude(kind=StepKind.UNDO)
    later = Q(visit__gt=run.visit) | Q(visit=run.visit, round__gt=run.round)
    if given.filter(later, item=run.item).exists():
        return Text("%(step)s has another result by now: its last one counts", run.node)
    whole = given.filter(kind=StepKind.MAP, visit=run.visit)
    if run.kind == StepKind.ITEM and not whole.exists():
        return Text(
            "%(step)s is not finished: its elements have no result to edit yet",
            run.node,
        )
    return ""


def _label(run: StepRun) -> str:
    return f"{run.node} #{run.item}" if run.item is not None else run.node


def _step_effects(names: Sequence[str], change: WorkflowChange) -> list[Effect]:
    """The steps that would begin; a step in a loop may have run before."""
    steps = [name for name in names if change.plan[name].step.function is not None]
    before = change.instance.step_runs.filter(node__in=steps, status__in=RUNS_BEFORE)
    known = set(before.order_by().values_list("node", flat=True).distinct())
    return [_step_effect(name, change, again=name in known) for name in steps]


def _step_effect(name: str, change: WorkflowChange, *, again: bool) -> Effect:
    return Effect(name, "step", again, change.plan[name].step.policy.idempotent)


PLANNED: dict[EditKind, Callable[[WorkflowPlan, int, Edit], None]] = {
    EditKind.RESULT: WorkflowPlan._plan_result,
    EditKind.SKIP: WorkflowPlan._plan_skip,
    EditKind.REDO: WorkflowPlan._plan_redo,
    EditKind.RETRY: WorkflowPlan._plan_retry,
    EditKind.EVENT: WorkflowPlan._plan_event,
}


def awaited_events(plan: Plan) -> set[str]:
    """Return the types of event that steps of a graph wait for."""
    waits = (vertex.step.event for vertex in plan.vertices.values())
    return {event.__name__ for event in waits if event is not None}


def _skip(change: WorkflowChange, skipped: Sequence[GivenResult]) -> None:
    """Settles open visits with the results of a person, in the order in which a replay of the history meets them."""
    for run, result, body in skipped:
        if run.pk in change.closed:
            raise OperationRefused(CANCELLED.filled(run.node))
        change.flush()  # the skip reads visits from the table: counts, revived and cancelled ones
        skip_visit(change, run, result, body)
