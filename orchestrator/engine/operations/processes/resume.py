"""Resume: takes a process back to a checkpoint; visits that were settled after it no longer count.

The pure core derives the open steps at the checkpoint from the visits that were settled until then, whose results stay.
The other visits are superseded: no step reads them any more, and pages still show them. The process enters the open
steps of the checkpoint again, in the next round, which later visits inherit. Resume undoes no effect of a superseded
step: the step runs again, or `cancel` is the right action. A process that has ended cannot resume: its parent has its
result, its key may belong to another process, and its events were given up.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Max, Q
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change import incidents
from orchestrator.engine.change.workflows import following, retrying, visits
from orchestrator.engine.change.workflows.visits import map_width
from orchestrator.engine.change.workflows.workflow_change import (
    WorkflowChange,
    cancel_child,
    lock_child,
)
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.sql.tables import events
from orchestrator.engine.storage import settled_visits
from orchestrator.engine.storage.settled_visits import State
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.text import Text

BY = Text("resumed from a checkpoint")


class ResumeProcess(ProcessOperation):
    """Continues from a checkpoint: results until then stay, steps that were settled later run again."""

    name = "resume"
    label = _("Resume from here")
    done = _("Resumed.")
    may = _("Can resume from a checkpoint")
    text = _(
        "Goes back to this checkpoint: what was done since then is done again, everything before it is kept."
    )
    given = (Given("to", "number"),)
    of_workflows = True
    while_undoing = False

    def effect(self, press: Press, revision: int) -> dict[str, Any]:
        instance = press.process
        _check(instance, revision)
        allow_idle(LONG_IDLE)
        change = WorkflowChange.of(instance, press.cause, press.now)
        known = settled_visits.state_at(instance, change.plan, revision)
        _offer_again(change, known, press.request)
        _supersede(change, known, revision)
        _enter(change, known)
        change.write()
        return {"resumed_from": revision, "superseded": len(known.later)}


resume = register(ResumeProcess())


def _check(instance: ProcessInstance, revision: int) -> None:
    if not 1 <= revision <= instance.revision:
        raise OperationRefused(
            "there is no checkpoint %(number)s: the process is at revision %(revision)s",
            revision,
            instance.revision,
        )
    for before in OperatorAction.objects.filter(
        instance=instance, action="resume", result=OperatorAction.Result.DONE
    ):
        to, at = before.after["resumed_from"], before.after["revision"]
        if to < revision < at:
            raise OperationRefused(
                "checkpoint %(number)s was given up when the process was resumed from %(until)s: choose one "
                "until %(again)s, or from %(after)s on",
                revision,
                to,
                to,
                at,
            )


def _offer_again(change: WorkflowChange, known: State, request: ActionRequest) -> None:
    """Offers copies of the events that superseded waits had taken; they wait for their steps."""
    taken = [
        run.left
        for run in known.later
        if run.kind == StepKind.WAIT and run.status == StepStatus.DONE
    ]
    rows = InboxEvent.objects.filter(process=change.instance, revision__in=taken)
    for row in rows.filter(verdict=Verdict.MOVED).order_by("pk"):
        copy = InboxEvent(
            source="resumption",
            event_id=f"{request.key}:{row.pk}",
            target=row.target,
            type=row.type,
            body=row.body,
            body_hash=row.body_hash,
            process_id=change.instance.pk,
            correlation_key=row.correlation_key,
            caused_by_id=row.caused_by_id,
            queue=row.queue,
            wake_at=change.now,
            received_at=change.now,
        )
        change.writes.append(events.insert(copy))
        change.to_wake.add(row.queue)


def _supersede(change: WorkflowChange, known: State, revision: int) -> None:
    """Closes the open visits, and supersedes the visits that were settled after the checkpoint."""
    _leave_children(change, known)
    rows = change.instance.step_runs.exclude(kind=StepKind.UNDO)
    closed = {"wake_at": None, "owner": "", "finished_at": change.now}
    closing = rows.filter(finished_at=None)
    change.instance.open_steps -= closing.update(**closed, left=change.revision)
    given_up = Q(left__gt=revision) | ~Q(blocked="")
    rows.filter(given_up).update(
        status=StepStatus.SUPERSEDED, blocked="", blocked_on=""
    )
    for run in known.later:
        if run.finished_at is None and run.error:
            change.mark(incidents.resolve(BY, change.now, step_run_id=run.pk))
    pk, kinds = change.instance.pk, incidents.OF_STEPS
    change.mark(*incidents.resolve_all(BY, change.now, pk, *kinds))


def _leave_children(change: WorkflowChange, known: State) -> None:
    """Cancels the sub-processes of superseded visits; locks them before any step, as their end does."""
    for run in known.later:
        if run.finished_at is not None or run.child_id is None:
            continue
        if known.goes_on(run):
            lock_child(run)
        else:
            cancel_child(run, change)


def _enter(change: WorkflowChange, known: State) -> None:
    """Enters the steps again that were open at the checkpoint."""
    last = change.instance.step_runs.aggregate(last=Max("round"))["last"] or 0
    change.round = last + 1
    for name, number in known.open:
        before = known.before.get((name, number))
        row = _visit(change, name, number)
        if (arrivals := known.joins.get(name)) is not None:
            following.start_join(row, change.plan[name], arrivals, change.now)
        if change.plan[name].each is not None:
            _spread(change, row, known)
            continue
        if before is not None and before.finished_at is None:
            _take_over(change, row, before)
        change.instance.step = name
        change.add(row)
    for name, arrivals in known.waiting.items():
        row = _visit(change, name, 1)
        row.kind, row.status, row.wake_at = StepKind.JOIN, StepStatus.WAITING, None
        for column, value in following.join_columns(arrivals).items():
            setattr(row, column, value)
        change.add(row)


def _visit(change: WorkflowChange, name: str, number: int) -> StepRun:
    process = change.instance.pk
    row = visits.make_visit(
        change.plan[name], process, change.queue, change.revision, change.now
    )
    row.visit, row.round = number, change.round
    return row


def _take_over(change: WorkflowChange, row: StepRun, before: StepRun) -> None:
    """Gives a visit the saved value and the sub-process of a visit that was open; retries a failed sub-process."""
    row.saved = before.saved
    if before.child_id is None:
        return
    child = lock_child(before)
    if child is None or child.status == "cancelled":
        return
    row.child_id = child.pk
    if child.finished_at is None:
        row.status, row.wake_at = StepStatus.WAITING, None
        retrying.try_child_again(change, child)


def _spread(change: WorkflowChange, head: StepRun, known: State) -> None:
    """Enters an open map again: settled elements stay, the others begin anew, those with a sub-process first."""
    each = change.plan[head.node].each
    items, kept = known.items(head.node, head.visit)
    done = sum(run.status != StepStatus.FAILED for run in kept)
    total = len(items) + len(kept)
    head.status, head.wake_at, head.expected = StepStatus.WAITING, None, total
    head.progress = {"done": done, "failed": len(kept) - done, "total": total}
    change.add(head)
    window = len(items)
    if each is not None and each.window is not None:
        window = map_width(each, head, len(kept) - done)
    for place, before in enumerate(sorted(items, key=_has_to_begin)):
        row = _visit(change, head.node, head.visit)
        row.kind, row.item, row.element = StepKind.ITEM, before.item, before.element
        if not _has_to_begin(before):
            _take_over(change, row, before)
        if place >= window:
            row.status, row.wake_at = StepStatus.WAITING, None
        change.add(row)


def _has_to_begin(item: StepRun) -> bool:
    """Whether an element begins anew: it has no unfinished sub-process to keep."""
    return item.child_id is None or item.finished_at is not None
