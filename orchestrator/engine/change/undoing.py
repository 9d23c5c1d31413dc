"""Undoing what was done: each finished step that can be undone, the last one first, each once, with its own retries.

Garcia-Molina and Salem, Sagas (1987): a process that cannot go on is taken back step by step. Here is which visits that
concerns and the rows by which they are undone; `workflow` begins it, `settling` goes on with it.
"""

from __future__ import annotations

from datetime import datetime

from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.change.visits import queue_of
from orchestrator.models import Blocked, ProcessInstance, StepKind, StepRun, StepStatus


def done_visits(instance: ProcessInstance, plan: Plan) -> list[StepRun]:
    """The finished visits that can be undone, the last one first; of a redone one its last round."""
    if not plan.undoable:
        return []
    runs = instance.step_runs.filter(node__in=plan.undoable, status=StepStatus.DONE)
    runs = runs.exclude(kind__in=[StepKind.UNDO, StepKind.MAP])
    last = {(run.node, run.visit, run.item): run for run in runs.order_by("round")}
    return sorted(last.values(), key=lambda run: (run.left or 0, run.pk), reverse=True)


def comes_to_its_end(run: StepRun, plan: Plan) -> bool:
    """Whether a step is running whose effect could not be undone if its result were lost: it is undone afterwards."""
    if run.blocked == Blocked.UNDOING:
        return True
    if run.node not in plan.undoable or run.redo:
        return False
    plain = run.kind in (StepKind.STEP, StepKind.ITEM)
    own = plain and plan[run.node].step.function is not None
    return bool(own and run.status == StepStatus.RUNNING and run.owner)


def is_undone_later(run: StepRun, plan: Plan) -> bool:
    """Whether a visit that is over now had only been left to come to its end, while its process is being undone."""
    if run.kind == StepKind.UNDO or run.node not in plan.undoable:
        return False
    return StepRun.objects.filter(pk=run.pk, blocked=Blocked.UNDOING).exists()


def undo_of(
    run: StepRun, plan: Plan, revision: int, now: datetime, *, begins: bool
) -> StepRun:
    """The visit that undoes a finished one, from a revision on; it waits for its turn unless it begins."""
    return StepRun(
        instance_id=run.instance_id,
        node=run.node,
        kind=StepKind.UNDO,
        visit=run.visit,
        item=run.item,
        element=run.element,
        round=run.round,
        status=StepStatus.READY if begins else StepStatus.WAITING,
        queue=queue_of(plan[run.node].undo, run.queue),
        wake_at=now if begins else None,
        entered=revision,
        started_at=now,
    )
