"""Making failed work due again, and work that waits for another attempt: steps, commands, events and deadlines.

A step that has failed with its sub-process is retried together with it, and the other way round. Parents are locked
before their sub-processes, and all of these before any step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change import incidents
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.workflows.child_failure import failure_of
from orchestrator.engine.change.workflows.visits import OWED, map_width
from orchestrator.engine.change.workflows.workflow_change import (
    UNBLOCKED,
    WorkflowChange,
    lock_child,
)
from orchestrator.engine.sql.connection import allow_idle_for_rows
from orchestrator.engine.sql.tables import commands, events, instances, step_runs
from orchestrator.engine.storage import inbox
from orchestrator.models import (
    Blocked,
    Cause,
    CommandStatus,
    InboxEvent,
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.text import Text

ASLEEP = (StepKind.JOIN, StepKind.MAP, StepKind.WAIT, StepKind.ASK, StepKind.SLEEP)
"""The kinds of visits that wait for something else than a worker."""


BY = Text("retried by an operator")


def try_commands_again(move: ProcessChange) -> None:
    """Make the failed commands and deadlines of a process manager due."""
    mine = {"instance_id": move.instance.pk}
    again: dict[str, Any] = {"wake_at": move.now, "attempt": 0, "owner": ""}
    for status in (CommandStatus.FAILED, CommandStatus.RETRYING):
        ready = {**again, "status": CommandStatus.READY, "finished_at": None}
        move.mark(commands.update(ready, {**mine, "status": status}, rows=None))
    runs = StepRun.objects.filter(instance=move.instance, finished_at=None)
    for run in runs.exclude(error=""):
        move.mark(step_runs.update(again, {"id": run.pk}))
    kinds = (Incident.Kind.COMMAND_FAILED, Incident.Kind.DEADLINE_FAILED)
    move.mark(*incidents.resolve_all(BY, move.now, move.instance.pk, *kinds))


def try_events_again(move: ProcessChange) -> None:
    """Make the failed events of a process due; people redeliver or discard an unexpected event instead."""
    mine = {"process_id": move.instance.pk}
    again: dict[str, Any] = {"wake_at": move.now, "attempt": 0, "owner": ""}
    failed = {**mine, "verdict": Verdict.FAILED}
    move.mark(events.update(inbox.offered_columns(move.now), failed, rows=None))
    troubled = InboxEvent.objects.filter(process=move.instance).exclude(error="")
    for event in troubled.filter(verdict=Verdict.RECEIVED, owner=""):
        free = {"id": event.pk, "owner": "", "verdict": Verdict.RECEIVED}
        move.mark(events.update(again, free, rows=None))
    about = {"kind": Incident.Kind.EVENT_FAILED, "instance_id": move.instance.pk}
    move.mark(incidents.resolve(BY, move.now, **about))


def try_steps_again(change: WorkflowChange, but: Collection[int] = ()) -> None:
    """Make all visits due that have failed or wait for another attempt, and revive the visits that they cancelled.

    Args:
        change: the change of the process.
        but: the keys of visits that stay as they are.
    """
    found = list(troubled_visits(change).exclude(pk__in=but))
    allow_idle_for_rows(len(found))
    for run in found:
        if run.status == StepStatus.FAILED:
            revive(change, run.node)
        mark_due(change, run)
    pk, kinds = change.instance.pk, incidents.OF_STEPS
    change.mark(*incidents.resolve_all(BY, change.now, pk, *kinds))


def troubled_visits(change: WorkflowChange) -> QuerySet[StepRun]:
    """Return the open visits that have failed, or wait for another attempt."""
    runs = change.instance.step_runs.filter(finished_at=None)
    bad = Q(status__in=[StepStatus.FAILED, StepStatus.RETRYING])
    due = Q(wake_at__isnull=False, owner="") | Q(remaining__isnull=False)
    held = ~Q(error="") & due
    return runs.filter(bad | held).order_by("pk")


def mark_due(change: WorkflowChange, run: StepRun) -> None:
    """Make one visit due with all its attempts, unless a worker has claimed it in the meantime."""
    child = lock_child(run) if run.child_id is not None else None
    if run.status == StepStatus.FAILED and child is not None and not child.finished_at:
        wait_again(change, run, {"id": run.pk, "finished_at": None})
        try_child_again(change, child)
        return
    again: dict[str, Any] = {"wake_at": change.now, "attempt": 0, "owner": ""}
    again["lost"] = ""  # the person who retries it knows about the lost attempt
    if run.status in (StepStatus.FAILED, StepStatus.RETRYING):
        again["status"] = StepStatus.READY
    if run.status == StepStatus.FAILED:
        # The visit checks anew whether the results that it needs are there.
        again |= {**UNBLOCKED, "declined": False}
    if child is not None and child.status == Status.CANCELLED:
        again["child"] = None  # the step starts another one
    same = {"id": run.pk, "status": run.status, "owner": run.owner}
    change.mark(step_runs.update(again, same, rows=None))
    change.mark(incidents.resolve(BY, change.now, step_run_id=run.pk))
    change.touch(run, str(again.get("status", run.status)))
    change.to_wake.add(run.queue)


def try_child_again(change: WorkflowChange, child: ProcessInstance) -> None:
    """Retry the failed work of a sub-process in the same commit; a paused one may have none."""
    if child.status not in (Status.FAILED, Status.PAUSED):
        return
    inner = WorkflowChange.of(child, change.cause, change.now)
    try_steps_again(inner)
    try_events_again(inner)
    inner.write()


def try_parents_again(instance: ProcessInstance, cause: Cause, now: datetime) -> None:
    """Let the parents' steps that had failed with this process wait again, up to the outermost; all are locked."""
    while instance.parent_id is not None and instance.status != Status.FAILED:
        failed = StepRun.objects.filter(child=instance.pk, status=StepStatus.FAILED)
        run = failed.filter(finished_at=None).first()
        parent = instances.lock(instance.parent_id)[0]
        if run is None or parent is None:
            return
        change = WorkflowChange.of(parent, cause, now)
        revive(change, run.node)
        wait_again(change, run, {"id": run.pk, "finished_at": None})
        change.write()
        instance = parent


def wait_for_child(change: WorkflowChange, run: StepRun) -> None:
    """Let a step wait for its sub-process, which goes on; look again at a sub-process that ends just now.

    A step that had failed with its sub-process goes on with it, unless the sub-process is paused.
    """
    child = lock_child(run)
    if child is not None and child.paused_at and run.status == StepStatus.FAILED:
        change.mark(step_runs.update(UNHELD, run.fence))
        change.touch(run, StepStatus.FAILED)
        return
    if run.status == StepStatus.FAILED:
        revive(change, run.node)
    over = child is None or child.finished_at is not None
    missed = over or (child is not None and failure_of(child) is not None)
    wait_again(change, run, run.fence, Text("its sub-process goes on"))
    if missed:
        change.mark(step_runs.update({"wake_at": change.now}, {"id": run.pk}))
        change.to_wake.add(run.queue)


def wait_again(
    change: WorkflowChange, run: StepRun, held: dict[str, Any], by: Text = BY
) -> None:
    """Let a step wait for its sub-process; the step may have failed with it.

    Args:
        change: the change of the step's process.
        run: the step's visit.
        held: the columns that the stored visit must still have.
        by: the resolution of the visit's incidents.
    """
    change.mark(step_runs.update(WAITS_FOR_CHILD, held))
    change.mark(incidents.resolve(by, change.now, step_run_id=run.pk))
    change.touch(run, StepStatus.WAITING)


def revive(change: WorkflowChange, node: str) -> None:
    """Revive the visits that the failure of this step had cancelled; once, however many elements had failed.

    They are stored at once: the visits that follow may cancel them again, which a query must find.
    """
    if node in change.revived:
        return
    change.revived.add(node)
    cancelled = change.instance.step_runs.filter(
        blocked=Blocked.FAILURE, blocked_on=node, status=StepStatus.CANCELLED
    )
    found = list(cancelled.order_by("item", "pk"))
    room = _room_of_maps(change, found)
    allow_idle_for_rows(len(found))
    for run in found:
        change.instance.open_steps += 1
        values = {**REVIVED, **unpolled_columns(run), **_listed(change, run)}
        if run.kind == StepKind.MAP:
            values["progress"] = _without_debt(run)
        if run.kind == StepKind.ITEM:
            room[run.node] -= 1
        begins = run.kind != StepKind.ITEM or room[run.node] >= 0
        values |= _awake(change.plan[run.node], run, change.now, begins=begins)
        change.mark(step_runs.update(values, {"id": run.pk}))
        change.touch(run, str(values["status"]))
        change.to_wake.add(run.queue)
    if found:
        change.flush()


def _room_of_maps(change: WorkflowChange, found: Collection[StepRun]) -> Counter[str]:
    """The number of elements that revived maps begin: their windows, which tolerated failures have narrowed."""
    room = Counter(run.node for run in found)
    for run in found:
        each = change.plan[run.node].each
        if run.kind == StepKind.MAP and each is not None and each.window is not None:
            failed = (run.progress or {}).get("failed", 0)
            room[run.node] = map_width(each, run, failed)
    return room


def _listed(change: WorkflowChange, run: StepRun) -> dict[str, Any]:
    """The columns by which lists find a visit of an earlier release, which was closed when they were filled."""
    if run.kind == StepKind.ITEM:
        return {}
    return {"process_started_at": change.instance.started_at}


def _without_debt(head: StepRun) -> dict[str, Any] | None:
    """The progress of a map whose window is not overfull."""
    shown = head.progress
    return shown and {name: shown[name] for name in shown if name != OWED}


def unpolled_columns(run: StepRun) -> dict[str, Any]:
    """Return the columns of a step that begins to poll anew when people retry it, or the step that cancelled it."""
    shown = run.progress or {}
    kept = {name: shown[name] for name in shown if name not in run.polled}
    return {"progress": kept} if run.polled else {}


UNHELD: dict[str, Any] = {"wake_at": None, "owner": "", "attempt": 0}
UNTROUBLED: dict[str, Any] = {
    **UNBLOCKED,
    "remaining": None,
    "error": "",
    "lost": "",
    "given_back": 0,
}
"""The columns of a visit without any trace of earlier attempts."""

WAITS_FOR_CHILD = {
    **UNHELD,
    **UNTROUBLED,
    "status": StepStatus.WAITING,
    "declined": False,
}
"""The columns of a visit that waits for the end of its sub-process."""

REVIVED = {**UNTROUBLED, "finished_at": None, "left": None}


def _awake(
    vertex: Vertex, run: StepRun, now: datetime, *, begins: bool
) -> dict[str, Any]:
    """The columns of a visit that is revived; `begins` says whether the window of its map has room for it."""
    # A sub-process was cancelled with its step, and may still undo: the step starts another one.
    asleep: dict[str, Any] = {
        "status": StepStatus.WAITING,
        "wake_at": None,
        "child": None,
    }
    if run.kind in (StepKind.WAIT, StepKind.ASK, StepKind.SLEEP):
        return {**asleep, "wake_at": deadline_end(vertex.step.deadline, now)}
    if run.kind in ASLEEP or not begins:
        return asleep
    return {**asleep, "status": StepStatus.READY, "wake_at": now, "attempt": 0}


def deadline_end(deadline: timedelta | None, now: datetime) -> datetime | None:
    """Return the end of a deadline that begins now."""
    return now + deadline if deadline is not None else None
