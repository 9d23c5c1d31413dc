"""What follows a visit that has come to its end, whatever kind of visit it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.definition.workflow.advance import Settled
from orchestrator.engine.change import incidents, maps, redoing
from orchestrator.engine.change.following import Following, go_on
from orchestrator.engine.change.visits import is_undone_later
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.text import Text

Visited = tuple[StepRun, Any, Mapping[str, Any]]
"""A claimed visit, what its function gave, as the step's type, and the columns in which that is stored."""


def follow(
    change: WorkflowChange,
    run: StepRun,
    result: Any,
    status: StepStatus = StepStatus.DONE,
) -> None:
    """Carries out what follows a visit that was settled with a result.

    Args:
        change: that has settled it.
        run: the visit.
        result: as the step's type.
        status: how it was settled: done or skipped.

    Raises:
        NoCase: no way on fits the result.
    """
    if run.kind == StepKind.UNDO:
        _undo_next(change)
    elif not change.alone and is_undone_later(run, change.plan):
        came_to_its_end(change, run, status)
    elif run.redo:
        redoing.finished(change, run)
    elif run.kind == StepKind.ITEM:
        maps.count(change, run, {run.item or 0: result})
    else:
        go_on(change, Settled(run.node, run.visit, "done", result))


def follow_together(change: WorkflowChange, visits: Iterable[Visited]) -> None:
    """Settles visits of several steps and carries out what follows, in the order in which a history tells it again.

    Raises:
        NoCase: no way on fits one of the results.
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


def came_to_its_end(change: WorkflowChange, run: StepRun, status: StepStatus) -> None:
    """Has a visit undone, if it was done, that had only been left to come to its end."""
    change.undoing = True
    others = change.instance.step_runs.filter(finished_at=None).exclude(pk=run.pk)
    if status == StepStatus.DONE:
        busy = others.filter(kind=StepKind.UNDO).exists()
        change.undo_visit(run, begins=not busy)
    elif not others.exists():
        all_is_undone(change)


def _undo_next(change: WorkflowChange) -> None:
    """Goes on with the next step to undo, or ends."""
    change.undoing = True
    waiting = change.instance.step_runs.filter(
        kind=StepKind.UNDO, status=StepStatus.WAITING
    )
    following = waiting.order_by("pk").first()
    if following is None:
        all_is_undone(change)
        return
    ready = {"status": StepStatus.READY, "wake_at": change.now}
    change.mark(step_runs.update(ready, {"id": following.pk}))
    change.touch(following, StepStatus.READY)
    change.rings.add(following.queue)


def all_is_undone(change: WorkflowChange) -> None:
    """Resolves what people were told of a process that ends by having been undone."""
    pk, kinds = change.instance.pk, incidents.OF_STEPS
    change.mark(*incidents.all_resolved(Text("undone"), change.now, pk, *kinds))
