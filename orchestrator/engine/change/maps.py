"""Fan-out and fan-in: counting the elements of a map, and going on when the last one is settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from orchestrator.definition.typing import takes_none
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change.following import go_on
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.storage.results import element_results
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import LeaseLost
from orchestrator.models import StepKind, StepRun, StepStatus

Given = Mapping[int, Any]
"""Results of elements by their numbers."""


def count(change: WorkflowChange, item: StepRun, given: Given) -> None:
    """Counts settled elements; after the last one the map is done, before it the next ones in the window start.

    Args:
        change: that has settled them.
        item: one of them.
        given: their results, as their type, by their numbers; none where it has failed.

    Raises:
        LeaseLost: the map was settled meanwhile.
    """
    head = head_of(change, item)
    progress = dict(head.progress or {})
    number = len(given) or 1
    progress["done" if given else "failed"] += number
    change.mark(step_runs.update({"progress": progress}, {"id": head.pk}))
    if progress["done"] + progress["failed"] == head.expected:
        change.close_open(head, StepStatus.DONE)
        result = _result(change, head, given)
        go_on(change, Settled(head.node, head.visit, result=result))
        return
    each = change.plan[item.node].each
    begun = item.status != StepStatus.WAITING or item.blocked or item.child_id
    if each is not None and each.window is not None and begun:
        _start(change, _asleep(change, item.node), number)


def completes(change: WorkflowChange, item: StepRun, number: int) -> bool:
    """Whether a map is done when so many more of its elements are settled.

    Raises:
        LeaseLost: it was settled meanwhile.
    """
    head = head_of(change, item)
    progress = head.progress or {}
    return bool(progress["done"] + progress["failed"] + number == head.expected)


def _result(change: WorkflowChange, head: StepRun, given: Given) -> list[Any] | None:
    """The list of a map's results where it decides on the way; it is not read where it does not."""
    vertex = change.plan[head.node]
    if not vertex.decides:
        return None
    none = takes_none(vertex.returns)
    found = element_results(change.instance, vertex, head.visit)
    found |= {
        item: result for item, result in given.items() if none or result is not None
    }
    return [result for _, result in sorted(found.items())]


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
    open_one = {"instance_id": change.instance.pk, "node": item.node}
    open_one |= {"kind": StepKind.MAP, "finished_at": None}
    head = step_runs.last(open_one, "round")
    if head is None:
        raise LeaseLost("the map is over")
    return head


def fill_windows(change: WorkflowChange) -> None:
    """Starts the elements that a window held back which is wider now, or is no more: no end of another one would."""
    rows = change.instance.step_runs
    heads = rows.filter(kind=StepKind.MAP, finished_at=None)
    for node in heads.values_list("node", flat=True):
        each = change.plan[node].each
        window = each.window if each is not None else None
        asleep = _asleep(change, node)
        number = asleep.count()
        if number and window is not None:
            items = rows.filter(node=node, kind=StepKind.ITEM, finished_at=None)
            number = min(number, window - (items.count() - number))
        if number > 0:
            _start(change, asleep, number)


def _asleep(change: WorkflowChange, node: str) -> QuerySet[StepRun]:
    """The elements of a map that wait outside the window."""
    return change.instance.step_runs.filter(
        node=node,
        kind=StepKind.ITEM,
        status=StepStatus.WAITING,
        blocked="",
        child=None,
    )


def _start(change: WorkflowChange, asleep: QuerySet[StepRun], number: int) -> None:
    """Starts the next ones of those that wait outside the window."""
    ready = {
        "status": StepStatus.READY,
        "wake_at": change.now,
        "started_at": change.now,
    }
    for row in asleep.order_by("item")[:number]:
        change.mark(
            step_runs.update(ready, {"id": row.pk, "status": StepStatus.WAITING})
        )
        change.rings.add(row.queue)
