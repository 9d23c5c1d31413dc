"""Decide what runs after a visit is settled: the next visits or elements, readers of a redone result, the next undo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet

from orchestrator.definition.annotations import takes_none
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change import incidents
from orchestrator.engine.change.workflows import redoing
from orchestrator.engine.change.workflows.following import Following, follow_settled
from orchestrator.engine.change.workflows.visits import is_undone_later
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.storage.results import element_results
from orchestrator.exceptions import LeaseLost
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.text import Text

Values = Mapping[int, Any]
"""Results of elements by their numbers."""


def count_elements(change: WorkflowChange, item: StepRun, given: Values) -> None:
    """Count settled elements; after the last one settle the map, before it start the next ones in the window.

    Args:
        change: the change that has settled them.
        item: one of them.
        given: their results, as their type, by their numbers; empty for a failed element.

    Raises:
        LeaseLost: the map was settled in the meantime.
    """
    head = lookup_map_row(change, item)
    progress = dict(head.progress or {})
    number = len(given) or 1
    progress["done" if given else "failed"] += number
    change.mark(step_runs.update({"progress": progress}, {"id": head.pk}))
    if progress["done"] + progress["failed"] == head.expected:
        change.close_open(head, StepStatus.DONE)
        result = _result(change, head, given)
        follow_settled(change, Settled(head.node, head.visit, result=result))
        return
    each = change.plan[item.node].each
    begun = item.status != StepStatus.WAITING or item.blocked or item.child_id
    if each is not None and each.window is not None and begun:
        _start(change, _asleep(change, item.node), number)


def completes_map(change: WorkflowChange, item: StepRun, number: int) -> bool:
    """Whether a map is done after a number of further settled elements.

    Raises:
        LeaseLost: the map was settled in the meantime.
    """
    head = lookup_map_row(change, item)
    progress = head.progress or {}
    return bool(progress["done"] + progress["failed"] + number == head.expected)


def _result(change: WorkflowChange, head: StepRun, given: Values) -> list[Any] | None:
    """The list of a map's results if it decides the way; None, without a query, if it does not."""
    vertex = change.plan[head.node]
    if not vertex.decides:
        return None
    none = takes_none(vertex.returns)
    found = element_results(change.instance, vertex, head.visit)
    found |= {
        item: result for item, result in given.items() if none or result is not None
    }
    return [result for _, result in sorted(found.items())]


def tolerates_element(change: WorkflowChange, item: StepRun, vertex: Vertex) -> bool:
    """Whether the map tolerates one more failed element."""
    if vertex.each is None:
        return False
    head = lookup_map_row(change, item)
    allowed = vertex.each.tolerate
    if isinstance(allowed, float):
        allowed = allowed * (head.expected or 0)
    return bool((head.progress or {})["failed"] + 1 <= allowed)


def lookup_map_row(change: WorkflowChange, item: StepRun) -> StepRun:
    """Return the row of the whole map.

    Raises:
        LeaseLost: the map was settled in the meantime.
    """
    open_one = {"instance_id": change.instance.pk, "node": item.node}
    open_one |= {"kind": StepKind.MAP, "finished_at": None}
    head = step_runs.last(open_one, "round")
    if head is None:
        raise LeaseLost("the map is over")
    return head


def fill_windows(change: WorkflowChange) -> None:
    """Start elements that wait outside a window that is wider now, or gone: no settled element would start them."""
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
    """The elements of a map that wait outside its window."""
    return change.instance.step_runs.filter(
        node=node, kind=StepKind.ITEM, status=StepStatus.WAITING, blocked="", child=None
    )


def _start(change: WorkflowChange, asleep: QuerySet[StepRun], number: int) -> None:
    """Start the next elements that wait outside the window."""
    ready = {
        "status": StepStatus.READY,
        "wake_at": change.now,
        "started_at": change.now,
    }
    for row in asleep.order_by("item")[:number]:
        change.mark(
            step_runs.update(ready, {"id": row.pk, "status": StepStatus.WAITING})
        )
        change.to_wake.add(row.queue)


SettledVisit = tuple[StepRun, Any, Mapping[str, Any]]
"""A claimed visit, the result of its function, converted to the type of the step, and the columns that store it."""


def follow(
    change: WorkflowChange,
    run: StepRun,
    result: Any,
    status: StepStatus = StepStatus.DONE,
) -> None:
    """Follow a visit that was settled with a result.

    Args:
        change: the change that has settled it.
        run: the visit.
        result: its result, converted to the type of the step.
        status: its status: done or skipped.

    Raises:
        NoCase: no link out of the step fits the result.
    """
    if run.kind == StepKind.UNDO:
        _undo_next(change)
    elif not change.alone and is_undone_later(run, change.plan):
        undo_after_end(change, run, status)
    elif run.redo:
        redoing.end_redo(change, run)
    elif run.kind == StepKind.ITEM:
        count_elements(change, run, {run.item or 0: result})
    else:
        follow_settled(change, Settled(run.node, run.visit, "done", result))


def follow_visits(change: WorkflowChange, visits: Iterable[SettledVisit]) -> None:
    """Settle visits of several steps and follow them, in the order in which a replay follows them.

    Raises:
        NoCase: no link out of a step fits its result.
    """
    ordered = sorted(visits, key=lambda visit: visit[0].pk)
    links = (link for run, *_ in ordered for link in change.plan[run.node].links)
    targets = {link.target for link in links}
    joins = [name for name in targets if change.plan[name].ways_in > 1]
    if len(ordered) > 1:
        Following(change).read(sorted(joins))
    for run, result, given in ordered:
        change.close(run, StepStatus.DONE, **given)
        follow(change, run, result)


def undo_after_end(change: WorkflowChange, run: StepRun, status: StepStatus) -> None:
    """Handle a visit that ended while its process was being undone: undo it if it was done."""
    change.undoing = True
    others = change.instance.step_runs.filter(finished_at=None).exclude(pk=run.pk)
    if status == StepStatus.DONE:
        busy = others.filter(kind=StepKind.UNDO).exists()
        change.undo_visit(run, begins=not busy)
    elif not others.exists():
        resolve_undone(change)


def _undo_next(change: WorkflowChange) -> None:
    """Make the next waiting undo ready; if none waits, resolve the incidents of the process."""
    change.undoing = True
    waiting = change.instance.step_runs.filter(
        kind=StepKind.UNDO, status=StepStatus.WAITING
    )
    following = waiting.order_by("pk").first()
    if following is None:
        resolve_undone(change)
        return
    ready = {"status": StepStatus.READY, "wake_at": change.now}
    change.mark(step_runs.update(ready, {"id": following.pk}))
    change.touch(following, StepStatus.READY)
    change.to_wake.add(following.queue)


def resolve_undone(change: WorkflowChange) -> None:
    """Resolve the incidents of a process that ends undone."""
    pk, kinds = change.instance.pk, incidents.OF_STEPS
    change.mark(*incidents.resolve_all(Text("undone"), change.now, pk, *kinds))
