"""What must hold of one workflow: its step runs are what the pure core makes of those that were settled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from orchestrator.definition.codec import decode, digest
from orchestrator.definition.workflow.advance import Ending as Outcome
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.engine.invariants.retelling import Retelling
from orchestrator.engine.invariants.runs import Run, Story
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import GIVEN, intact
from orchestrator.exceptions import InvalidMessage, ProcessionError
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)

TAKEN_BACK = (StepStatus.CANCELLED, StepStatus.SUPERSEDED)
MOST = 20
"""How many findings of one process are told."""


def check(instance: ProcessInstance) -> Iterator[str]:
    """What is not as it must be with one workflow."""
    story = Story(instance)
    plan = definitions.plan_of(instance)
    findings = (*_checkpoints(story), *_compared(story, plan))
    for finding in islice(findings, MOST):
        yield f"{instance.pk}: {finding}"


def _checkpoints(story: Story) -> Iterator[str]:
    """Each checkpoint is as it was written, and the visit that it says was settled was settled in it."""
    runs = {run.pk: run for run in story.runs}
    rows = Checkpoint.objects.filter(instance=story.instance.pk).order_by("revision")
    for number, data, checksum in rows.values_list("revision", "data", "checksum"):
        if digest(data) != checksum:
            yield f"checkpoint {number} does not match its checksum"
        if number == 1 and data != story.instance.data:
            yield "its input is not the one it started with"
        cause = story.causes.get(number)
        if cause is None or cause.kind != CauseKind.STEP or cause.part:
            continue
        run = runs.get(int(cause.ref))
        if run is None:
            yield f"checkpoint {number} names step run {cause.ref}, which is not there"
        elif run.left != number and run.status not in TAKEN_BACK:
            yield f"checkpoint {number} says that step run {cause.ref} was settled, but that was at {run.left}"


def check_joins(instance: ProcessInstance) -> Iterator[str]:
    """What is not as it must be with the joins of one workflow."""
    story = Story(instance)
    told = Retelling(definitions.plan_of(instance))
    try:
        strays = list(_strays(story, told))
    except Exception:  # noqa: BLE001  # `check` says so
        return
    if not strays:
        for finding in islice(_joins(story, told), MOST):
            yield f"{instance.pk}: {finding}"


def _compared(story: Story, plan: Plan) -> Iterator[str]:
    told = Retelling(plan)
    try:
        yield from _strays(story, told)
    except Untold:
        return
    except Exception as error:  # noqa: BLE001  # predicates may raise anything
        yield f"its history cannot be told again: {type(error).__name__}: {error}"
        return
    yield from _starts(story, told)


def _strays(story: Story, told: Retelling) -> Iterator[str]:
    """Tells the history again; the visits that were settled although nothing had started them."""
    for run, settled in _settled(story, told.plan):
        if not told.settle(settled, run.left or 0):
            yield f"{_named(run)} was settled, but nothing had started it"


class Untold(ProcessionError):
    """A result that decided on a way was found to be bad and was redone: what it was then is not known any more."""


# What was settled


def _settled(story: Story, plan: Plan) -> Iterator[tuple[Run, Settled]]:
    """The visits that something followed from, in the order in which they were settled."""
    visits = story.visits.values()
    over = [run for run in visits if run.left and run.left < story.undone_at]
    asked = [run for run in over if _is_asked(run, plan)]
    values = story.values(asked)
    for run in sorted(over, key=lambda run: run.settled_at):
        if run.node not in plan.vertices:
            yield run, Settled(run.node, run.visit)
        elif outcome := _outcome(run, story.causes):
            yield run, _told(run, outcome, plan[run.node], values.get(run.pk), story)


def _outcome(run: Run, causes: Mapping[int, Cause | None]) -> Outcome | None:
    if run.status in GIVEN:
        return "done"
    if run.status == StepStatus.FAILED:
        return "failed"
    cause = causes.get(run.left or 0)
    late = cause is not None and cause[:2] == (CauseKind.DEADLINE, str(run.pk))
    return "late" if late and run.status == StepStatus.CANCELLED else None


def _is_asked(run: Run, plan: Plan) -> bool:
    """Whether it depends on the stored result which ways were taken."""
    vertex = plan.vertices.get(run.node)
    if vertex is None or run.kind == StepKind.MAP:
        return run.status == StepStatus.FAILED
    if run.status == StepStatus.FAILED:
        return bool(vertex.exceptions)
    last = vertex.loop is not None and vertex.loop.steps[-1] == vertex.name
    return last or any(choice.conditional for choice in vertex.choices)


def _told(
    run: Run, outcome: Outcome, vertex: Vertex, row: StepRun | None, story: Story
) -> Settled:
    """What the pure core was told of a settled visit."""
    if row is None:
        return Settled(run.node, run.visit, outcome)
    if not intact(row):
        raise Untold
    if outcome == "failed":
        error = _error(vertex, row, story)
        return Settled(run.node, run.visit, outcome, error=error)
    return Settled(run.node, run.visit, outcome, _result(vertex, row))


def _result(vertex: Vertex, row: StepRun) -> Any:
    try:
        return decode(vertex.result_type, row.result)
    except InvalidMessage:
        if row.status != StepStatus.SKIPPED:
            raise
        return row.result  # whoever skips a step may give any result


def _error(vertex: Vertex, row: StepRun, story: Story) -> type[BaseException] | None:
    """The type of a stored failure, as far as the error links of the step tell it apart.

    The name is known, not the class: if the running code has no such class, the link that was taken tells.
    """
    name = (row.result or {}).get("type", "")
    links = [link for link in vertex.exceptions if link.error is not None]
    for link in links:
        if link.error is not None and name in _names(link.error):
            return link.error
    entered = {
        visit[0] for visit, run in story.visits.items() if run.entered == row.left
    }
    return next((link.error for link in links if link.target in entered), None)


def _names(error: type[BaseException]) -> set[str]:
    found, waiting = {error.__name__}, [error]
    while waiting:
        below = waiting.pop().__subclasses__()
        found |= {one.__name__ for one in below}
        waiting += below
    return found


# What it must have led to


def _starts(story: Story, told: Retelling) -> Iterator[str]:
    """Every visit that has started is one that must have, at that revision; none is missing."""
    visits = dict(story.visits)
    for visit, revision in told.entered.items():
        run = visits.pop(visit, None)
        if run is None or run.kind == StepKind.JOIN:
            yield f"{visit[0]} (visit {visit[1]}) has not started, though revision {revision} leads to it"
        elif run.status == StepStatus.NOT_TAKEN:
            yield f"{_named(run)} was not taken, though revision {revision} leads to it"
        else:
            yield from _standing(run, revision, told, story)
    for run in visits.values():
        yield from _unstarted(run, told)
    for name in told.passed:
        if (name, 1) not in visits:
            yield f"{name} is on a branch that was not taken, but nothing says so"


def _standing(run: Run, revision: int, told: Retelling, story: Story) -> Iterator[str]:
    """A visit that was to start has started when it was to, and is as open as it was left."""
    if run.entered != revision and run.entered not in story.resumed_at:
        yield f"{_named(run)} started at revision {run.entered}, not at {revision}"
    visit = (run.node, run.visit)
    if run.open and visit in told.cancelled:
        yield f"{_named(run)} is open, but nothing waits for it any more"
    if run.status == StepStatus.CANCELLED and visit in told.open.get(run.node, ()):
        ended = story.instance.finished_at or story.undone_at <= story.instance.revision
        if not (ended or run.blocked):
            yield f"{_named(run)} was cancelled without a reason"


def _unstarted(run: Run, told: Retelling) -> Iterator[str]:
    """A run of a visit that must not have started: a join that waits, or a branch that was not taken."""
    if run.status == StepStatus.NOT_TAKEN:
        if run.node not in told.passed:
            yield f"{_named(run)} says that its branch was not taken, but nothing has decided that"
    elif run.kind != StepKind.JOIN:
        yield f"{_named(run)} has started, but nothing leads to it"
    elif run.node not in told.joins:
        yield f"{_named(run)} waits for its branches, but none has arrived"


def _joins(story: Story, told: Retelling) -> Iterator[str]:
    """A join counts exactly the branches that were resolved, and those of them that were taken."""
    last = max(story.resumed_at, default=0)
    for name, now in told.joins.items():
        run = story.visits.get((name, 1))
        if run is None or (run.left or last) < last:
            continue  # what came late to a join that had started was perhaps done again
        if (run.arrived, run.taken) != (now.arrived, now.taken):
            yield (
                f"the join at {name} counts {run.arrived} arrived and {run.taken} taken, "
                f"but there were {now.arrived} and {now.taken}"
            )


def _named(run: Run) -> str:
    more = f", round {run.round}" if run.round > 1 else ""
    return f"{run.node} (visit {run.visit}{more})"
