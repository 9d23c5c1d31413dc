"""Making rows for the visits of a workflow's steps, and for those that undo them.

Undoing covers each finished step that can be undone, the last one first, each once, with its own retries (Garcia-Molina
and Salem, Sagas, 1987). `workflow` begins it, `settling` goes on with it.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Q

from orchestrator.definition.codec import encode_as
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.rows import Each
from orchestrator.definition.workflow.steps import Step
from orchestrator.engine.sql.row_objects import copies, new_row
from orchestrator.engine.storage.application_code.calling import ApplicationCall
from orchestrator.engine.storage.results import has_returned
from orchestrator.models import Blocked, ProcessInstance, StepKind, StepRun, StepStatus
from orchestrator.queue import base_queue, calls_queue

KINDS = {
    "step": StepKind.STEP,
    "wait": StepKind.WAIT,
    "ask": StepKind.ASK,
    "sleep": StepKind.SLEEP,
    "run": StepKind.RUN,
}


OWED = "owed"
"""In a map's progress: the number of elements that are to end before one starts, since the window has narrowed."""


def queue_of(step: Step | None, queue: str) -> str:
    """Return the queue of a visit of a step, given the queue of another visit of its process."""
    if step is None:
        return queue
    queue = step.policy.queue or base_queue(queue)
    return calls_queue(queue) if step.is_call else queue


def make_visit(
    vertex: Vertex, process: UUID, queue: str, revision: int, now: datetime
) -> StepRun:
    """Return a ready visit, or one that waits for something outside until its deadline."""
    step = vertex.step
    row = new_row(
        StepRun,
        instance_id=process,
        node=vertex.name,
        kind=StepKind.MAP if vertex.each else KINDS[step.kind],
        status=StepStatus.READY,
        queue=queue_of(step, queue),
        wake_at=now,
        entered=revision,
        started_at=now,
    )
    if step.kind in ("wait", "ask", "sleep"):
        row.status = StepStatus.WAITING
        row.wake_at = now + step.deadline if step.deadline else None
    return row


def make_elements(row: Each, head: StepRun, result: Any) -> list[StepRun]:
    """Return the visits of a map's elements, and set the head's numbers; visits outside the window wait.

    Raises:
        InvalidMessage: the result is no list, or an element cannot be stored.
    """
    with ApplicationCall(str(row)):  # an InvalidMessage of its property too
        given = list(getattr(result, row.over) if row.over else result)
    values = encode_as(list, given, exact=False)  # read as the type of the parameter
    window = row.window or len(values)
    head.status, head.wake_at, head.expected = StepStatus.WAITING, None, len(values)
    head.progress = {"done": 0, "failed": 0, "total": len(values)}
    of_item = {"kind": StepKind.ITEM, "element": None}
    first = make_like(head, head.entered, head.started_at, begins=True, **of_item)
    elements = copies(first, len(values))
    for index, (element, value) in enumerate(zip(elements, values, strict=True)):
        element.item, element.element = index, value
        if index >= window:
            element.status, element.wake_at = StepStatus.WAITING, None
    return elements


def tolerated_failures(each: Each, head: StepRun) -> int:
    """Return the number of elements of a map that may fail."""
    if isinstance(each.tolerate, float):
        # As the share is written: 0.29 of 100 are 29, and the float is a little less.
        return int(Decimal(str(each.tolerate)) * (head.expected or 0))
    return each.tolerate


def map_width(each: Each, head: StepRun, failed: int) -> int:
    """Return the number of elements that may run at once: the window's share for the failures that may still come."""
    whole, tolerated = each.window or 1, tolerated_failures(each, head)
    left = max(tolerated + 1 - failed, 1)
    return -(-whole * left // (tolerated + 1))


def make_like(
    run: StepRun, revision: int, now: datetime, *, begins: bool, **values: Any
) -> StepRun:
    """Return a further visit of another visit's step.

    Args:
        run: the other visit.
        revision: the revision of its process.
        now: the database's time.
        begins: whether it is ready; else it waits for its turn.
        values: the columns that differ from the other visit's.
    """
    same: dict[str, Any] = {
        "instance_id": run.instance_id,
        "node": run.node,
        "kind": run.kind,
        "visit": run.visit,
        "item": run.item,
        "element": run.element,
        "round": run.round,
        "queue": run.queue,
        "status": StepStatus.READY if begins else StepStatus.WAITING,
        "wake_at": now if begins else None,
        "entered": revision,
        "started_at": now,
    }
    return new_row(StepRun, **{**same, **values})


# Undoing


def undoable_visits(instance: ProcessInstance, plan: Plan) -> list[StepRun]:
    """Return the ended visits that can be undone, the last one first; for a redone visit its last round.

    Those among them that were cancelled before the way on from their results was decided count as done (`has_effect`).
    """
    if not plan.undoable:
        return []
    undecided = Q(status=StepStatus.CANCELLED) & ~Q(checksum="")
    ended = Q(status=StepStatus.DONE) | undecided
    runs = instance.step_runs.filter(ended, node__in=plan.undoable)
    runs = runs.exclude(kind__in=[StepKind.UNDO, StepKind.MAP]).order_by("round")
    found = (
        run for run in runs if run.status == StepStatus.DONE or has_effect(run, plan)
    )
    last = {(run.node, run.visit, run.item): run for run in found}
    return sorted(last.values(), key=_end_of, reverse=True)


def _end_of(run: StepRun) -> tuple[bool, int, int]:
    """The end of a visit, to be compared; a cancelled one is done only now."""
    return run.status == StepStatus.CANCELLED, run.left or 0, run.pk


def must_end_first(run: StepRun, plan: Plan) -> bool:
    """Whether a running step goes on to its end before it is undone: without its result it could not be undone."""
    if run.blocked == Blocked.UNDOING:
        return True
    if run.node not in plan.undoable or run.redo:
        return False
    plain = run.kind in (StepKind.STEP, StepKind.ITEM)
    own = plain and plan[run.node].step.function is not None
    return bool(own and run.status == StepStatus.RUNNING and run.owner)


def has_effect(run: StepRun, plan: Plan) -> bool:
    """Whether the function of an open or cancelled visit has returned: it is undone though nothing followed it.

    A step that has skipped itself has done nothing.
    """
    if run.kind not in (StepKind.STEP, StepKind.ITEM) or run.redo:
        return False
    returned = bool(run.checksum) and run.skipped_because is None
    return returned and run.node in plan.undoable


def is_undone_later(run: StepRun, plan: Plan) -> bool:
    """Whether a visit went on to its end while its process was being undone."""
    if run.kind == StepKind.UNDO or run.node not in plan.undoable:
        return False
    return StepRun.objects.filter(pk=run.pk, blocked=Blocked.UNDOING).exists()


def status_at_end(run: StepRun) -> StepStatus:
    """Return the status of a visit that has come to its end while its process was being undone, and goes no further."""
    if not has_returned(run):
        return StepStatus.CANCELLED
    return StepStatus.DONE if run.skipped_because is None else StepStatus.SKIPPED


def make_undo(
    run: StepRun, plan: Plan, revision: int, now: datetime, *, begins: bool
) -> StepRun:
    """Return the visit that undoes a finished one; it waits for its turn unless it begins."""
    queue = queue_of(plan[run.node].undo, run.queue)
    return make_like(run, revision, now, begins=begins, kind=StepKind.UNDO, queue=queue)
