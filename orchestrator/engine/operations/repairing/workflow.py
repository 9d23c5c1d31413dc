"""Repairing a workflow: results that were given, steps that are skipped or redone, events that never came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db.models import Q

from orchestrator.definition import Event
from orchestrator.definition.codec import decode, encode_as
from orchestrator.definition.workflow.advance import Arrivals, Settled
from orchestrator.engine import inbox
from orchestrator.engine.change import following, redoing, retrying
from orchestrator.engine.change.following import decided
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.repairing.edits import OF_MANAGERS, Edit, EditKind
from orchestrator.engine.operations.repairing.events import add_events
from orchestrator.engine.operations.repairing.plan import Edited, Effect, RepairPlan
from orchestrator.engine.operations.skip import check_can_be_skipped, read_result
from orchestrator.engine.operations.visit import (
    followed,
    open_run,
    skip_run,
)
from orchestrator.engine.storage import tables
from orchestrator.engine.storage.results import GIVEN, sealed
from orchestrator.exceptions import OperationRefused
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.text import Text

Given = tuple[StepRun, Any, Any]
"""A visit, and the result that it is given: as its type, and as JSON values."""

RUNS_BEFORE = (StepStatus.DONE, StepStatus.RUNNING, StepStatus.FAILED)


@dataclass
class WorkflowPlan(RepairPlan):
    """How a workflow would stand, and what of it is made when the repair is applied."""

    results: list[Given] = field(default_factory=list)
    skipped: list[Given] = field(default_factory=list)
    redone: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    again: bool = False
    known: dict[str, Arrivals] = field(default_factory=dict)
    """The joins as the skipped steps would leave them."""
    given_up: set[str] = field(default_factory=set)
    """The steps that the skipped ones would have cancelled."""


def planned(change: WorkflowChange, edits: list[Edit]) -> WorkflowPlan:
    """What edits of a workflow would come to.

    Args:
        change: one that is asked and never written.
        edits: the edits.
    """
    plan = WorkflowPlan(edits)
    plan.plan_each(lambda place, edit: _plan(plan, edit, change))
    plan.skipped.sort(key=lambda given: given[0].pk)
    for run, result, _ in plan.skipped:
        skips = ((edit.kind, edit.run) == (EditKind.SKIP, run.pk) for edit in edits)
        place = [*skips].index(True)
        if run.node in plan.given_up:
            plan.refuse(
                place, Text("%(step)s would be cancelled by another edit", run.node)
            )
            continue
        try:
            followed(run, partial(_look_ahead, plan, change, run, result))
        except OperationRefused as refused:
            plan.refuse(place, refused)
    return plan


def _plan(plan: WorkflowPlan, edit: Edit, change: WorkflowChange) -> None:
    if edit.kind in OF_MANAGERS:
        raise OperationRefused(REFUSED[edit.kind])
    PLANNED[edit.kind](plan, edit, change)


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
    """Why the result of a visit cannot be edited; "" if it can be."""
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


def _plan_result(plan: WorkflowPlan, edit: Edit, change: WorkflowChange) -> None:
    run = StepRun.objects.filter(instance=change.instance, pk=edit.run).first()
    if run is None:
        raise OperationRefused("the process has no step run %(key)s", edit.target)
    OperationRefused.raise_for(why_no_result(change, run))
    vertex = change.plan[run.node]
    form = vertex.returns if run.kind == StepKind.ITEM else vertex.result_type
    result = decode(form, edit.value)
    body = encode_as(form, result)
    sealed(body)
    plan.results.append((run, result, body))
    plan.edited.append(Edited(_named(run), run.result, body))


def _named(run: StepRun) -> str:
    return f"{run.node} #{run.item}" if run.item is not None else run.node


def _plan_skip(plan: WorkflowPlan, edit: Edit, change: WorkflowChange) -> None:
    run = open_run(change.instance, edit.run)
    check_can_be_skipped(run)
    result, body = read_result(change, run, edit.value)
    plan.skipped.append((run, result, body))
    plan.leaves.append(run.node)
    plan.edited.append(Edited(_named(run), None, body))


def _look_ahead(
    plan: WorkflowPlan, change: WorkflowChange, run: StepRun, result: Any
) -> None:
    """Which steps would start when a step is skipped; asked of the pure core, after those that are skipped before it.

    Raises:
        Exception: no way on fits the result, or whatever a predicate raises.
    """
    if run.kind in (StepKind.ITEM, StepKind.UNDO) or run.redo:
        return

    def look(names: Sequence[str]) -> dict[str, Arrivals]:
        new = [name for name in names if name not in plan.known]
        known = tables.joins.of(change.instance.pk, new) if new else {}
        for name, row in known.items():
            over = row.kind != StepKind.JOIN or row.finished_at is not None
            plan.known[name] = following.arrivals_of(row, over=over)
        return {name: plan.known[name] for name in names if name in plan.known}

    found = decided(change, Settled(run.node, run.visit, "done", result), look)
    plan.known |= found.joins
    plan.given_up |= {*found.given_up, *found.caught}
    begun = [name for name, _ in found.entered]
    plan.stands += begun
    plan.effects += _started(begun, change)


def _started(names: Sequence[str], change: WorkflowChange) -> list[Effect]:
    """The steps that would begin; one in a loop may have run before."""
    steps = [name for name in names if change.plan[name].step.function is not None]
    before = change.instance.step_runs.filter(node__in=steps, status__in=RUNS_BEFORE)
    known = set(before.order_by().values_list("node", flat=True).distinct())
    return [_effect(name, change, again=name in known) for name in steps]


def _effect(name: str, change: WorkflowChange, *, again: bool) -> Effect:
    return Effect(name, "step", again, change.plan[name].step.policy.idempotent)


def _plan_redo(plan: WorkflowPlan, edit: Edit, change: WorkflowChange) -> None:
    OperationRefused.raise_for(redoing.why_not(change, edit.target))
    if any(run.node == edit.target for run, *_ in plan.results):
        raise OperationRefused(
            "the result of %(step)s is edited: one or the other", edit.target
        )
    plan.redone.append(edit.target)
    plan.stands.append(edit.target)
    plan.effects.append(_effect(edit.target, change, again=True))


def _plan_retry(plan: WorkflowPlan, edit: Edit, change: WorkflowChange) -> None:
    skipped = [one.run for one in plan.edits if one.kind == EditKind.SKIP]
    rows = retrying.troubled(change).exclude(pk__in=skipped).order_by()
    plan.again = True
    names = sorted(set(rows.values_list("node", flat=True).distinct()))
    known = [name for name in names if name in change.plan.vertices]
    plan.effects += [_effect(name, change, again=True) for name in known]


def _plan_event(plan: WorkflowPlan, edit: Edit, change: WorkflowChange) -> None:
    events = {
        vertex.step.event.__name__
        for vertex in change.plan.vertices.values()
        if vertex.step.event is not None
    }
    if edit.target not in events:
        raise OperationRefused(
            "%(name)s takes no %(type)s in any step", change.instance.name, edit.target
        )
    plan.events.append(inbox.read(edit.target, edit.value))


PLANNED: dict[EditKind, Callable[[WorkflowPlan, Edit, WorkflowChange], None]] = {
    EditKind.RESULT: _plan_result,
    EditKind.SKIP: _plan_skip,
    EditKind.REDO: _plan_redo,
    EditKind.RETRY: _plan_retry,
    EditKind.EVENT: _plan_event,
}


def carry_out(
    press: Press, plan: WorkflowPlan, change: WorkflowChange
) -> dict[str, Any]:
    """Carries out what was planned, as one change; returns what the audit row tells of it."""
    for run, _, body in plan.results:
        columns = sealed(body)
        redoing.give(change, run, body, columns["checksum"])
    if plan.again:
        left = [run.pk for run, *_ in plan.skipped]
        retrying.try_steps_again(change, left)
        retrying.try_events_again(change)
    _skip(change, plan.skipped)
    for step in plan.redone:
        redoing.begin(change, step, "wanted by an operator", limit=None)
    add_events(change, plan.events, press)
    change.write()
    if plan.again:
        retrying.try_parents_again(press.process, press.cause, press.now)
    return {"results": [[one.of, one.before, one.after] for one in plan.edited]}


def _skip(change: WorkflowChange, skipped: Sequence[Given]) -> None:
    """Settles open visits with what a person gives, in the order in which a history tells them again."""
    for run, result, body in skipped:
        if run.pk in change.closed:
            raise OperationRefused(
                "%(step)s would be cancelled by another edit", run.node
            )
        change.flush()  # what is counted, revived or cancelled is read where it is stored
        skip_run(change, run, result, body)
