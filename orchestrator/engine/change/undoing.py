"""Undoing what was done: each finished step that can be undone, the last one first, each once, with its own retries.

Garcia-Molina and Salem, Sagas (1987): a process that cannot go on is taken back step by step.
"""

from __future__ import annotations

from typing import Any

from orchestrator.engine.change import incidents
from orchestrator.engine.change.workflow import Flow
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.storage.tables import instances, step_runs
from orchestrator.models import (
    Blocked,
    Cause,
    CauseKind,
    Incident,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)


def can_undo(flow: Flow) -> bool:
    """Whether anything was done that can be undone."""
    return bool(flow.plan.undoable) and bool(_done(flow))


def begin(flow: Flow) -> None:
    """Cancels everything that is open, sub-processes too, and starts to undo. With nothing to undo the process ends.

    A step that is just running and can be undone comes to its end first: else its effect would stay.
    """
    stop(flow)
    for number, run in enumerate(_done(flow)):
        flow.add(_undo(flow, run, begins=number == 0))


def stop(flow: Flow, *, undo: bool = True, by: str = "cancelled") -> None:
    """Cancels everything that is open; what nobody adds then ends the process.

    Args:
        flow: the change of the process.
        undo: whether its sub-processes undo what they have done.
        by: what is said to have settled the incidents about it.
    """
    flow.undoing = True
    cancelled: dict[str, Any] = {
        "status": StepStatus.CANCELLED,
        "wake_at": None,
        "owner": "",
        "blocked": "",
        "blocked_on": "",
        "finished_at": flow.now,
        "left": flow.revision,
    }
    for reason in {run.blocked for run in _given_up(flow, undo, by)}:
        mine = {"instance_id": flow.instance.pk, "finished_at": None}
        same: dict[str, Any] = {**mine, "blocked": reason}
        flow.mark(step_runs.update(cancelled, same, rows=None))


def _given_up(flow: Flow, undo: bool, by: str) -> list[StepRun]:
    """The open visits that are cancelled now, with their incidents and sub-processes."""
    found = []
    runs = flow.instance.step_runs.filter(finished_at=None)
    for run in runs.exclude(pk__in=flow.closed).defer("result", "element", "saved"):
        if undo and _comes_to_its_end(flow, run):
            later = {"id": run.pk, "finished_at": None}
            flow.mark(step_runs.update({"blocked": Blocked.UNDOING}, later))
            continue
        found.append(run)
        flow.instance.open_steps -= 1
        flow.touch(run, StepStatus.CANCELLED)
        if run.error:
            flow.mark(incidents.resolved(by, flow.now, step_run_id=run.pk))
        if run.child_id is not None:
            cancel_child(run, undo=undo)
    return found


def _comes_to_its_end(flow: Flow, run: StepRun) -> bool:
    """Whether a step is running whose effect could not be undone if its result were lost: it is undone afterwards."""
    if run.blocked == Blocked.UNDOING:
        return True
    if run.node not in flow.plan.undoable or run.redo:
        return False
    plain = run.kind in (StepKind.STEP, StepKind.ITEM)
    own = plain and flow.plan[run.node].step.function is not None
    return bool(own and run.status == StepStatus.RUNNING and run.owner)


def is_undone_later(flow: Flow, run: StepRun) -> bool:
    """Whether a visit that is over now had only been left to come to its end, while its process is being undone."""
    if run.kind == StepKind.UNDO or run.node not in flow.plan.undoable:
        return False
    return StepRun.objects.filter(pk=run.pk, blocked=Blocked.UNDOING).exists()


def came_to_its_end(flow: Flow, run: StepRun, status: StepStatus) -> None:
    """Has such a visit undone, if it was done."""
    flow.undoing = True
    others = flow.instance.step_runs.filter(finished_at=None).exclude(pk=run.pk)
    if status == StepStatus.DONE:
        busy = others.filter(kind=StepKind.UNDO).exists()
        flow.add(_undo(flow, run, begins=not busy))
    elif not others.exists():
        _settle_incidents(flow)


def go_on(flow: Flow, run: StepRun) -> None:
    """Goes on with the next step to undo, or ends."""
    flow.undoing = True
    waiting = flow.instance.step_runs.filter(
        kind=StepKind.UNDO, status=StepStatus.WAITING
    )
    following = waiting.order_by("pk").first()
    if following is None:
        _settle_incidents(flow)
        return
    ready = {"status": StepStatus.READY, "wake_at": flow.now}
    flow.mark(step_runs.update(ready, {"id": following.pk}))
    flow.touch(following, StepStatus.READY)
    flow.rings.add(following.queue)


def _settle_incidents(flow: Flow) -> None:
    for kind in (Incident.Kind.STEP_FAILED, Incident.Kind.CORRUPTED_DATA):
        about = {"kind": kind, "instance_id": flow.instance.pk}
        flow.mark(incidents.resolved("undone", flow.now, **about))


def cancel_child(run: StepRun, *, undo: bool = True) -> None:
    """Cancels the sub-process of a step that no longer waits for it; what it has done is undone, unless told not to."""
    child = locked_child(run)
    if child is None or child.finished_at is not None:
        return
    now = database_now()
    if child.step_runs.filter(kind=StepKind.UNDO).exists():
        return  # it is on its way out by itself
    plan = definitions.plan_of(child)
    queue = definitions.workflow_of(child).queue
    taken_back = Flow(child, Cause.of(CauseKind.PARENT, run.pk), now, plan, queue)
    if undo:
        begin(taken_back)
    else:
        stop(taken_back, undo=False)
    taken_back.write()


def locked_child(run: StepRun) -> ProcessInstance | None:
    """The sub-process of a step, locked: whether it has ended is then known for good."""
    return instances.lock(run.child_id)[0]


def _done(flow: Flow) -> list[StepRun]:
    """The finished visits that can be undone, the last one first; of a redone one its last round."""
    runs = flow.instance.step_runs.filter(
        node__in=flow.plan.undoable, status=StepStatus.DONE
    )
    runs = runs.exclude(kind__in=[StepKind.UNDO, StepKind.MAP])
    last = {(run.node, run.visit, run.item): run for run in runs.order_by("round")}
    return sorted(last.values(), key=lambda run: (run.left or 0, run.pk), reverse=True)


def _undo(flow: Flow, run: StepRun, *, begins: bool) -> StepRun:
    queue = flow.plan[run.node].undo_policy.queue
    return StepRun(
        instance_id=run.instance_id,
        node=run.node,
        kind=StepKind.UNDO,
        visit=run.visit,
        item=run.item,
        element=run.element,
        round=run.round,
        status=StepStatus.READY if begins else StepStatus.WAITING,
        queue=queue or run.queue,
        wake_at=flow.now if begins else None,
        entered=flow.revision,
        started_at=flow.now,
    )
