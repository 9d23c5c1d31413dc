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
from orchestrator.engine.change.workflows.visits import (
    OWED,
    is_undone_later,
    map_width,
    tolerated_failures,
)
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.storage.results import element_results
from orchestrator.exceptions import LeaseLost
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.models.step_run import HELD
from orchestrator.text import Text

Values = Mapping[int, Any]
"""Results of elements by their numbers."""


UNBEGUN: dict[str, Any] = {
    "attempt": 0,
    "error": "",
    "lost": "",
    "checksum": "",
    "progress": None,
    "child_id": None,
    "redo": False,
}
"""The columns of an element that no worker has begun. Any other goes on while its map is held."""


def count_elements(change: WorkflowChange, item: StepRun, given: Values) -> None:
    """Count settled elements; after the last one settle the map, before it start the next ones in the window.

    The window narrows with each tolerated failure. While the map is held (`hold_map`), none starts.

    Args:
        change: the change that has settled them.
        item: one of them.
        given: their results, as their type, by their numbers; empty for a failed element.

    Raises:
        LeaseLost: the map was settled in the meantime.
    """
    head = lookup_map_row(item)
    progress = dict(head.progress or {})
    progress["done" if given else "failed"] += len(given) or 1
    ended = progress["done"] + progress["failed"] == head.expected
    if not ended:
        _start_next(change, item, head, progress, given)
    change.mark(step_runs.update({"progress": progress}, {"id": head.pk}))
    if ended:
        change.close_open(head, StepStatus.DONE)
        result = _result(change, head, given)
        follow_settled(change, Settled(head.node, head.visit, result=result))


def _start_next(
    change: WorkflowChange,
    item: StepRun,
    head: StepRun,
    progress: dict[str, Any],
    given: Values,
) -> None:
    """Start the next elements after some were settled, and note in the map's progress what has changed."""
    number = len(given) or 1
    if HELD in progress:
        if not _open_failures(change, item.node):
            del progress[HELD]
            progress[OWED] = _fill(change, head, progress)
        return
    each = change.plan[item.node].each
    begun = item.status != StepStatus.WAITING or item.blocked or item.child_id
    if each is None or each.window is None or not begun:
        return
    owed = progress.pop(OWED, 0)
    if not given:
        failed = progress["failed"]
        owed += map_width(each, head, failed - number) - map_width(each, head, failed)
    if owed > number:
        progress[OWED] = owed - number
    if owed < number:
        _start(change, _asleep(change, item.node), number - owed)


def completes_map(change: WorkflowChange, item: StepRun, number: int) -> bool:
    """Whether a map is done after a number of further settled elements.

    Raises:
        LeaseLost: the map was settled in the meantime.
    """
    head = lookup_map_row(item)
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


def tolerates_element(item: StepRun, vertex: Vertex) -> bool:
    """Whether the map tolerates one more failed element."""
    if vertex.each is None:
        return False
    head = lookup_map_row(item)
    return bool((head.progress or {})["failed"] < tolerated_failures(vertex.each, head))


def hold_map(change: WorkflowChange, item: StepRun) -> None:
    """Begin no further element of a map that tolerates some failures, since one more has failed.

    The elements that no worker has begun wait until a person has retried or skipped what failed.
    """
    each = change.plan[item.node].each
    if each is None or not each.tolerate:
        return
    head = lookup_map_row(item)
    kept = {"progress": {**(head.progress or {}), HELD: True}}
    change.mark(step_runs.update(kept, {"id": head.pk}))
    unbegun = {"instance_id": change.instance.pk, "node": item.node, **UNBEGUN}
    unbegun |= {"kind": StepKind.ITEM, "status": StepStatus.READY, "owner": ""}
    change.mark(step_runs.update(HELD_BACK, unbegun, rows=None))


HELD_BACK = {"status": StepStatus.WAITING, "wake_at": None, "remaining": None}
"""The columns of an element that waits until its map is not held any more."""


def is_held(item: StepRun) -> bool:
    """Whether no further element of a map begins: one has failed, and waits for a person."""
    head = _open_map_row(item)
    items = StepRun.objects.filter(instance=item.instance_id, node=item.node)
    failed = items.filter(kind=StepKind.ITEM, status=StepStatus.FAILED)
    return head is not None and head.holds and failed.filter(finished_at=None).exists()


def _open_map_row(item: StepRun) -> StepRun | None:
    open_one = {"instance_id": item.instance_id, "node": item.node}
    open_one |= {"kind": StepKind.MAP, "finished_at": None}
    return step_runs.last(open_one, "round")


def lookup_map_row(item: StepRun) -> StepRun:
    """Return the row of the whole map.

    Raises:
        LeaseLost: the map was settled in the meantime.
    """
    head = _open_map_row(item)
    if head is None:
        raise LeaseLost("the map is over")
    return head


def fill_windows(change: WorkflowChange) -> None:
    """Fill the windows of maps that another version makes wider or narrower.

    In a wider window elements start now: no settled element would start them. In a narrower one, those that have begun
    go on, and none starts until few enough are left.
    """
    for head in change.instance.step_runs.filter(kind=StepKind.MAP, finished_at=None):
        if head.holds:
            continue
        progress = dict(head.progress or {})
        before, owed = progress.pop(OWED, 0), _fill(change, head, progress)
        if owed != before:
            kept = {**progress, OWED: owed} if owed else progress
            change.mark(step_runs.update({"progress": kept}, {"id": head.pk}))


def _fill(change: WorkflowChange, head: StepRun, progress: Mapping[str, Any]) -> int:
    """Start elements that wait, as far as the map's window has room. Return how many have begun beyond it."""
    each, asleep = change.plan[head.node].each, _asleep(change, head.node)
    room = waiting = asleep.count()
    if each is not None and each.window is not None:
        begun = _open_items(change, head.node).count() - waiting
        room = map_width(each, head, progress["failed"]) - begun
    _start(change, asleep, max(room, 0))
    return max(-room, 0)


def _open_items(change: WorkflowChange, node: str) -> QuerySet[StepRun]:
    """The elements of a map that have not ended."""
    items = change.instance.step_runs.filter(node=node, kind=StepKind.ITEM)
    return items.filter(finished_at=None).exclude(pk__in=change.closed)


def _open_failures(change: WorkflowChange, node: str) -> bool:
    """Whether an element of a map has failed and waits for a person."""
    return _open_items(change, node).filter(status=StepStatus.FAILED).exists()


def _asleep(change: WorkflowChange, node: str) -> QuerySet[StepRun]:
    """The elements of a map that wait outside its window."""
    waiting = {"status": StepStatus.WAITING, "blocked": "", "child": None}
    return _open_items(change, node).filter(**waiting)


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
