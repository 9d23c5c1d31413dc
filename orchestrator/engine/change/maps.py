"""Fan-out and fan-in: counting the elements of a map, and going on when the last one is settled."""

from __future__ import annotations

from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change.following import go_on
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import LeaseLost
from orchestrator.models import StepKind, StepRun, StepStatus


def count(
    change: WorkflowChange, item: StepRun, *, failed: bool, number: int = 1
) -> None:
    """Counts settled elements; after the last one the map is done, before it the next ones in the window start.

    Raises:
        LeaseLost: the map was settled meanwhile.
    """
    head = head_of(change, item)
    progress = dict(head.progress or {})
    progress["failed" if failed else "done"] += number
    change.mark(step_runs.update({"progress": progress}, {"id": head.pk}))
    if progress["done"] + progress["failed"] == head.expected:
        change.close_open(head, StepStatus.DONE)
        go_on(change, Settled(head.node, head.visit))
        return
    each = change.plan[item.node].each
    begun = item.status != StepStatus.WAITING or item.blocked or item.child_id
    if each is not None and each.window is not None and begun:
        _start_next(change, item, number)


def tolerates(change: WorkflowChange, item: StepRun, vertex: Vertex) -> bool:
    """Whether the map puts up with one more failed element."""
    if vertex.each is None:
        return False
    head = head_of(change, item)
    allowed = vertex.each.tolerate
    if isinstance(allowed, float):
        allowed = allowed * (head.expected or 0)
    return bool((head.progress or {})["failed"] + 1 <= allowed)


def head_of(change: WorkflowChange, item: StepRun) -> StepRun:
    """The row that stands for the whole map.

    Raises:
        LeaseLost: it was settled meanwhile.
    """
    heads = change.instance.step_runs.filter(node=item.node, kind=StepKind.MAP)
    head = heads.filter(finished_at=None).order_by("-round").first()
    if head is None:
        raise LeaseLost("the map is over")
    return head


def _start_next(change: WorkflowChange, item: StepRun, number: int) -> None:
    """Starts the next elements that wait outside the window."""
    waiting = change.instance.step_runs.filter(
        node=item.node,
        kind=StepKind.ITEM,
        status=StepStatus.WAITING,
        blocked="",
        child=None,
    )
    ready = {
        "status": StepStatus.READY,
        "wake_at": change.now,
        "started_at": change.now,
    }
    for row in waiting.order_by("item")[:number]:
        change.mark(
            step_runs.update(ready, {"id": row.pk, "status": StepStatus.WAITING})
        )
        change.rings.add(row.queue)
