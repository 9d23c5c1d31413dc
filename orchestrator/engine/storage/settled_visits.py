"""What was settled in a workflow until a checkpoint, and how it stood then, as the pure core tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from orchestrator.definition.codec import decode
from orchestrator.definition.workflow.advance import Arrivals, Settled
from orchestrator.definition.workflow.advance import Ending as Outcome
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.replay import ReplayedState as Standing
from orchestrator.definition.workflow.replay import replayed
from orchestrator.engine.storage.results import GIVEN
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import (
    Cause,
    CauseKind,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)

Visit = tuple[str, int]
"""A step and the number of its visit."""

INNER = (StepKind.JOIN, StepKind.ITEM)
"""Rows that are no visits by themselves: a join that waits, an element of a map."""


@dataclass
class Known:
    """How a workflow stood at a checkpoint, beside the rows that it has now."""

    open: list[Visit] = field(default_factory=list)
    """The visits that were open, in the order in which they were entered."""
    joins: Mapping[str, Arrivals] = field(default_factory=dict)
    waiting: dict[str, Arrivals] = field(default_factory=dict)
    """The joins that waited for more branches."""
    kept: list[StepRun] = field(default_factory=list)
    """What was settled until then."""
    later: list[StepRun] = field(default_factory=list)
    """What was settled later, or is still open."""
    before: dict[Visit, StepRun] = field(default_factory=dict)
    """Of the later rows those that are visits."""

    def goes_on(self, run: StepRun) -> bool:
        """Whether a visit was open at the checkpoint too."""
        return (run.node, run.visit) in self.open and not run.redo

    def items(self, node: str, visit: int) -> tuple[list[StepRun], list[StepRun]]:
        """The elements of a map that begin anew, and those that are kept."""
        return _items(self.later, node, visit), _items(self.kept, node, visit)


def _items(runs: Iterable[StepRun], node: str, visit: int) -> list[StepRun]:
    found = {
        run.item: run
        for run in runs
        if (run.node, run.visit, run.kind) == (node, visit, StepKind.ITEM)
        and not run.redo
    }
    return sorted(found.values(), key=lambda run: run.item or 0)


def until(instance: ProcessInstance, plan: Plan, revision: int) -> Known:
    """How a workflow stood at a revision.

    Raises:
        OperationRefused: the running code reads its history in another way.
    """
    rows = instance.step_runs.exclude(
        status=StepStatus.SUPERSEDED,
    ).exclude(kind=StepKind.UNDO)
    known = Known()
    for run in rows.order_by("pk"):
        over = run.left is not None and run.left <= revision and not run.blocked
        (known.kept if over else known.later).append(run)
    standing = _replayed(instance, plan, known.kept)
    dropped = {
        run.node
        for run in known.kept
        if run.kind == StepKind.JOIN and run.status == StepStatus.CANCELLED
    }
    known.open = [visit for visit in standing.open if visit not in standing.given_up]
    known.joins = standing.joins
    waiting = standing.waiting.items()
    known.waiting = {name: now for name, now in waiting if name not in dropped}
    known.before = {
        (run.node, run.visit): run
        for run in known.later
        if run.kind not in INNER and not run.redo
    }
    return known


def _replayed(instance: ProcessInstance, plan: Plan, kept: list[StepRun]) -> Standing:
    try:
        standing = replayed(plan, _settled(instance, plan, kept))
    except OperationRefused:
        raise
    except Exception as error:
        raise OperationRefused(
            f"the running code cannot read its history: {error}"
        ) from error
    if standing.stray:
        step = standing.stray[0][0]
        raise OperationRefused(
            f"the running code cannot read its history: nothing leads to {step}"
        )
    return standing


def _settled(
    instance: ProcessInstance, plan: Plan, kept: list[StepRun]
) -> Iterable[Settled]:
    """The visits that something followed from, in the order in which they were settled."""
    given_up = _given_up(plan, kept)
    late = lateness(instance)
    over = [run for run in kept if run.kind not in INNER and not run.redo]
    for run in sorted(over, key=_order):
        vertex = plan.vertices.get(run.node)
        if vertex is None:
            raise OperationRefused(f"the running code has no step {run.node}")
        if (run.node, run.left) in given_up or run.status == StepStatus.NOT_TAKEN:
            continue
        outcome = _outcome(run, late)
        yield Settled(
            run.node,
            run.visit,
            outcome,
            _result(run, vertex) if outcome == "done" else None,
            _error(run, vertex) if outcome == "failed" else None,
        )


def _order(run: StepRun) -> tuple[int, bool, int]:
    """Of several visits settled in one change, that which was cancelled by another's failure comes after it."""
    return run.left or 0, run.status == StepStatus.CANCELLED, run.pk


def _given_up(plan: Plan, kept: list[StepRun]) -> set[tuple[str, int | None]]:
    """The visits, with their revisions, that a join cancelled when it had enough branches: nothing followed."""
    found = set[tuple[str, int | None]]()
    for run in kept:
        vertex = plan.vertices.get(run.node)
        if vertex is None or vertex.join is None or vertex.join.rest != "cancel":
            continue
        found |= {(name, run.entered) for name in plan.region(run.node)}
    cancelled = {
        (run.node, run.left) for run in kept if run.status == StepStatus.CANCELLED
    }
    return found & cancelled


def lateness(instance: ProcessInstance) -> Set[tuple[int, int]]:
    """The visits that ended because their deadlines had passed, each with the revision of its end."""
    rows = instance.checkpoints.filter(cause__startswith=f"{CauseKind.DEADLINE}:")
    causes = rows.values_list("cause", "revision")
    return {(Cause.parse(text).step_run or 0, revision) for text, revision in causes}


def _outcome(run: StepRun, late: Set[tuple[int, int]]) -> Outcome:
    if run.status in GIVEN:
        return "done"
    if run.status == StepStatus.FAILED:
        return "failed"
    return "late" if (run.pk, run.left) in late else "cancelled"


def _result(run: StepRun, vertex: Vertex) -> Any:
    """The result, if it decides on the way."""
    last = vertex.loop is not None and vertex.loop.steps[-1] == vertex.name
    if not last and not any(choice.conditional for choice in vertex.choices):
        return None
    try:
        return decode(vertex.result_type, run.result)
    except InvalidMessage:
        if run.status == StepStatus.SKIPPED:
            return run.result  # a step that passes itself over may give anything
        raise


def _error(run: StepRun, vertex: Vertex) -> type[BaseException] | None:
    """The type of a failure, as far as the error links of the step tell it apart."""
    name = (run.result or {}).get("type", "")
    for link in vertex.exceptions:
        if link.error is not None and name in _names(link.error):
            return link.error
    return None


def _names(error: type[BaseException]) -> set[str]:
    """The names of an error type and of those below it."""
    return {error.__name__}.union(*map(_names, error.__subclasses__()))
