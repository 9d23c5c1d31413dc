"""Decide what runs after a visit is settled: the next visits, those that read a redone result, or the next undo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.definition.workflow.advance import Settled
from orchestrator.engine.change import incidents, maps, redoing
from orchestrator.engine.change.following import Following, follow_settled
from orchestrator.engine.change.visits import is_undone_later
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.sql.tables import step_runs
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.text import Text

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
        maps.count_elements(change, run, {run.item or 0: result})
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
