"""The settled visits of a workflow, and its state at a checkpoint, replayed by the pure core from the stored rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Q

from orchestrator.definition.codec import decode
from orchestrator.definition.workflow.advance import Arrivals, Ending, Settled
from orchestrator.definition.workflow.plan import Link, Plan, Vertex
from orchestrator.definition.workflow.replay import Replay, StepVisit, replay_history
from orchestrator.engine.storage.results import GIVEN, check_result, element_results
from orchestrator.engine.storage.switches import Switch, switches_of
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import (
    Blocked,
    Cause,
    CauseKind,
    OperatorAction,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.text import Text


class Run(NamedTuple):
    """The columns of a step run without its values."""

    pk: int
    node: str
    kind: str
    visit: int
    round: int
    redo: bool
    status: str
    entered: int
    left: int | None
    arrived: int
    taken: int
    blocked: str
    declined: bool
    finished_at: Any


ORDER = ("round", "pk")
"""The order of the step runs of a history."""


class History:
    """The step runs of one workflow as they are stored.

    A value is read only if it decided the way.

    Args:
        instance: the process.
        steps: the names of its steps in another version, to replay it there; steps without such a name are left out.
        runs: its step runs in the order of `ORDER`, if they are known; else a query reads them.
    """

    def __init__(
        self,
        instance: ProcessInstance,
        steps: Mapping[str, str] | None = None,
        runs: Sequence[Run] | None = None,
    ) -> None:
        self.instance = instance
        if runs is None:
            rows = instance.step_runs.order_by(*ORDER).values_list(*Run._fields)
            runs = [Run(*row) for row in rows]
        self.runs = list(runs)
        self._stored = {new: old for old, new in (steps or {}).items()}
        if steps is not None:
            self.runs = [
                run._replace(node=steps[run.node])
                for run in self.runs
                if run.node in steps
            ]
        self.visits: dict[StepVisit, Run] = {
            (run.node, run.visit): run
            for run in self.runs
            if run.kind not in (StepKind.ITEM, StepKind.UNDO)
            and run.status != StepStatus.SUPERSEDED
            and not run.redo
        }
        """The run that counts for each visit: neither superseded by a resume nor a redo."""
        self.undone_at = self._undone_at()
        """The revision at which the undoing began; nothing follows from visits settled then or later."""

    def _undone_at(self) -> int:
        undos = [run.entered for run in self.runs if run.kind == StepKind.UNDO]
        failed = (run for run in self.runs if run.status == StepStatus.FAILED)
        undos += [run.left for run in failed if run.declined and run.left]
        if any(run.blocked == Blocked.UNDOING for run in self.runs):
            undos.append(self.instance.revision)  # undoing begins after that run's end
        return min(undos, default=self.instance.revision + 1)

    @cached_property
    def resumed_at(self) -> set[int]:
        """The revisions at which operators resumed the process from an earlier checkpoint."""
        done = OperatorAction.objects.filter(
            instance=self.instance.pk, action="resume", result="done"
        )
        return {after["revision"] for after in done.values_list("after", flat=True)}

    @cached_property
    def switches(self) -> list[Switch]:
        """The process's migrations."""
        return switches_of(self.instance)

    @property
    def switched_at(self) -> int:
        """The first revision on the current version; 0 for a process that has begun on it."""
        return max((switch.revision for switch in self.switches), default=0)

    def settled(self, plan: Plan, until: int | None = None) -> Iterator[Settled]:
        """Yield the visits from which something followed, in the order in which they were settled.

        Visits that other steps have cancelled are left out: a replay cancels them itself. A visit whose step the plan
        lacks is included, however it ended.

        Args:
            plan: the workflow's plan.
            until: the last revision; None for all revisions before the undoing began.

        Raises:
            CorruptInput: a result that decided the way does not match its checksum.
            InvalidMessage: the result does not have the declared form.
        """
        last = self.undone_at - 1 if until is None else until
        over = [run for run in self.visits.values() if run.left and run.left <= last]
        caught = self._caught(plan)
        asked = [run.pk for run in over if _decides(run, plan.vertices.get(run.node))]
        values = StepRun.objects.only("node", "result", "checksum").in_bulk(asked)
        late = self._late(over)
        for run in sorted(over, key=lambda run: (run.left or 0, run.pk)):
            vertex = plan.vertices.get(run.node)
            if vertex is None:
                yield Settled(run.node, run.visit)
            elif (outcome := _outcome(run, late)) == "failed":
                link = caught.get((run.left or 0, run.node))
                yield Settled(run.node, run.visit, "failed", caught=link)
            elif outcome == "done" and run.kind == StepKind.MAP and vertex.decides:
                stored = self._stored.get(run.node, run.node)
                found = element_results(self.instance, vertex, run.visit, stored)
                result = [found[number] for number in sorted(found)]
                yield Settled(run.node, run.visit, outcome, result)
            elif outcome:
                yield _told(run, outcome, vertex, values.pop(run.pk, None))

    def _late(self, over: Iterable[Run]) -> Mapping[int, str]:
        """The revisions at which deadlines fired, with the keys of their visits.

        These visits are cancelled ones: without a cancelled visit there is no query.
        """
        if all(run.status != StepStatus.CANCELLED for run in over):
            return {}
        rows = self.instance.checkpoints.filter(
            cause__startswith=f"{CauseKind.DEADLINE}:"
        )
        found = rows.values_list("revision", "cause")
        return {revision: Cause.parse(cause).ref for revision, cause in found}

    def _caught(self, plan: Plan) -> Mapping[tuple[int, str], Link]:
        """The error links that were taken, by the revisions at which their steps failed and the steps' names.

        The checkpoint has the links. The error's class cannot tell them: only its name is stored, which several classes
        may have, and this process may never have imported the class.
        """
        errors = {link.id: link for link in plan.links if link.kind == "error"}
        if not errors or all(run.status != StepStatus.FAILED for run in self.runs):
            return {}
        failed = StepRun.objects.filter(
            instance=self.instance.pk,
            status=StepStatus.FAILED,
            item=None,
            left__isnull=False,
        )
        rows = self.instance.checkpoints.filter(revision__in=failed.values("left"))
        return {
            (revision, errors[taken].source): errors[taken]
            for revision, edge in rows.values_list("revision", "edge")
            for taken in edge.split(",")
            if taken in errors
        }


def _told(run: Run, outcome: Ending, vertex: Vertex, row: StepRun | None) -> Settled:
    """A settled visit, with its result if that decided the way."""
    if row is None:
        return Settled(run.node, run.visit, outcome)
    body = check_result(row)
    try:
        result = decode(vertex.result_type, body)
    except InvalidMessage:
        if run.status != StepStatus.SKIPPED:
            raise
        result = body  # a person who skips a step may give any result
    return Settled(run.node, run.visit, outcome, result)


def _decides(run: Run, vertex: Vertex | None) -> bool:
    """Whether the stored result of a settled visit decided the way."""
    if vertex is None:
        return False
    if run.status not in GIVEN or run.kind == StepKind.MAP:
        return False
    return vertex.decides


def _outcome(run: Run, late: Mapping[int, str]) -> Ending | None:
    """The ending of a visit; None if nothing followed from it."""
    if run.status in GIVEN:
        return "done"
    if run.status == StepStatus.FAILED:
        return "failed"
    ended = run.status == StepStatus.CANCELLED
    return "late" if ended and late.get(run.left or 0) == str(run.pk) else None


# At a checkpoint


@dataclass
class State:
    """The state of a workflow at a checkpoint, with its present rows."""

    open: list[StepVisit]
    """The visits that were open, in the order in which they were entered."""
    joins: Mapping[str, Arrivals]
    waiting: Mapping[str, Arrivals]
    """The joins that waited for more branches."""
    kept: list[StepRun]
    """The elements of maps that were settled by then."""
    later: list[StepRun]
    """The rows that were settled later, or are still open."""

    @cached_property
    def before(self) -> dict[StepVisit, StepRun]:
        """The visits among the later rows."""
        inner = (StepKind.JOIN, StepKind.ITEM)
        return {
            (run.node, run.visit): run
            for run in self.later
            if run.kind not in inner and not run.redo
        }

    def goes_on(self, run: StepRun) -> bool:
        """Whether a visit was open at the checkpoint too."""
        return (run.node, run.visit) in self.open and not run.redo

    def items(self, node: str, visit: int) -> tuple[list[StepRun], list[StepRun]]:
        """Return the elements of a map that begin anew, and those that are kept."""
        return _items(self.later, node, visit), _items(self.kept, node, visit)


def _items(runs: Iterable[StepRun], node: str, visit: int) -> list[StepRun]:
    found = {
        run.item: run
        for run in runs
        if (run.node, run.visit, run.kind) == (node, visit, StepKind.ITEM)
        and not run.redo
    }
    return sorted(found.values(), key=lambda run: run.item or 0)


def state_at(instance: ProcessInstance, plan: Plan, revision: int) -> State:
    """Return the state of a workflow at a revision.

    Raises:
        OperationRefused: the running code cannot replay its history.
    """
    replay = _replayed(instance, plan, revision)
    rows = instance.step_runs.exclude(status=StepStatus.SUPERSEDED)
    rows = rows.exclude(kind=StepKind.UNDO).order_by("pk")
    over = Q(left__lte=revision, blocked="")
    elements = rows.filter(over, kind=StepKind.ITEM).defer("result", "element", "saved")
    return State(
        open=list(replay.open.items()),
        joins=replay.joins,
        waiting=replay.waiting,
        kept=list(elements),
        later=list(rows.exclude(over)),
    )


def _replayed(instance: ProcessInstance, plan: Plan, revision: int) -> Replay:
    history = History(instance)
    try:
        replay = replay_history(plan, history.settled(plan, revision))
    except Exception as error:
        raise OperationRefused("its history cannot be read: %(why)s", error) from error
    for step, _ in (*replay.stray, *_unled(history, replay, revision)):
        if step not in plan.vertices:
            raise OperationRefused("the running code has no step %(step)s", step)
        raise OperationRefused(
            "the running code cannot read its history: nothing leads to %(step)s", step
        )
    if not replay.open and instance.finished_at is None:
        raise OperationRefused(
            Text(
                "the running code cannot read its history: nothing would be left to do"
            )
        )
    return replay


def _unled(history: History, replay: Replay, revision: int) -> list[StepVisit]:
    """The visits that had started by a revision, and that the replay does not reach."""
    return [
        visit
        for visit, run in history.visits.items()
        if run.entered <= revision
        and run.kind != StepKind.JOIN
        and run.status != StepStatus.NOT_TAKEN
        and visit not in replay.entered
    ]
