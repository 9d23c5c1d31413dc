"""The invariant of deadlines: each open visit has its next one in time, and each one that passed had its effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from orchestrator.definition import ProcessManager, Workflow
from orchestrator.engine.invariants.stored_sets import ProcessSet, is_unchanged
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    CauseKind,
    Checkpoint,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

SLACK = timedelta(seconds=60)
"""Moments may differ by this time: parts of a change may read the clock one after the other."""
TIMED = (StepKind.WAIT, StepKind.ASK, StepKind.SLEEP)
NONE = timedelta(0)


def deadlines(some: ProcessSet) -> Iterator[str]:
    """I4: no deadline is removed, passed without an effect, or is too late although no person has extended it.

    A process is left out if the running code has changed its definition since, or lacks it.
    """
    if not some.timed_visits:
        return
    now = database_now()
    for process in some.processes:
        runs = some.timed_visits.get(process.pk, ())
        if not runs:
            continue
        try:
            definition = definitions.definition_of(process)
            if not is_unchanged(definition, process):
                continue
        except Exception:  # noqa: BLE001, S112  # the running code lacks it: `model` reports it
            continue
        if issubclass(definition, ProcessManager):
            yield from _of_manager(definition, process, runs, some, now)
        elif definition.static is not None:
            yield from _of_workflow(definition, process, runs, some, now)


# Process managers


def _of_manager(
    definition: type[ProcessManager],
    process: ProcessInstance,
    runs: Iterable[StepRun],
    some: ProcessSet,
    now: datetime,
) -> Iterator[str]:
    checkpoints = some.checkpoints[process.pk]
    passed = _passed(checkpoints)
    for run in runs:
        if run.node not in {str(step) for step in definition.Step}:
            continue
        step = definition.Step(run.node)
        if run.finished_at is None:
            timers = definition.timers(step)
            yield from _next(process, run, timers, checkpoints, now)
        if not some.switches[process.pk]:
            guarded = [
                bool(d.guards or d.predicates) for d in definition.deadlines(step)
            ]
            yield from _effects(run, guarded, passed)


def _passed(checkpoints: Iterable[Checkpoint]) -> set[tuple[str, str]]:
    """The deadlines that have moved a process: the key of the visit, and the number of the deadline."""
    of_deadlines = f"{CauseKind.DEADLINE}:"
    rows = (row for row in checkpoints if row.cause.startswith(of_deadlines))
    return {(cause.ref, cause.part) for row in rows if (cause := row.moved_by)}


def _next(
    process: ProcessInstance,
    run: StepRun,
    timers: tuple[timedelta, ...],
    checkpoints: Iterable[Checkpoint],
    now: datetime,
) -> Iterator[str]:
    """The next deadline of an open visit is there, and not too late. One that fails has its own times."""
    if run.owner or run.error or run.deadlines_fired >= len(timers):
        return
    number, timer = run.deadlines_fired + 1, timers[run.deadlines_fired]
    if run.wake_at is None and run.remaining is None:
        yield f"{_at(run)} has no deadline {number} any more"
        return
    whole = timer + (run.extended or NONE)
    if process.paused_at is not None:
        left = run.remaining if run.wake_at is None else None
        if left is not None and left > max(whole, timer) + SLACK:
            yield f"deadline {number} of {_at(run)} is too late, but no person has extended it"
        return
    latest = run.started_at + whole + _paused_time(checkpoints, run.started_at)
    if run.wake_at is not None and run.wake_at > max(latest, now) + SLACK:
        yield f"deadline {number} of {_at(run)} is too late, but no person has extended it"


def _paused_time(checkpoints: Iterable[Checkpoint], since: datetime) -> timedelta:
    """How long a process was paused since a moment, from its checkpoints."""
    rows = [row for row in checkpoints if row.at >= since]
    pauses = (
        after.at - row.at
        for row, after in pairwise(rows)
        if row.status == Status.PAUSED
    )
    return sum(pauses, NONE)


def _effects(
    run: StepRun, guarded: list[bool], passed: set[tuple[str, str]]
) -> Iterator[str]:
    """Each deadline of a visit that counts as passed has moved the process, unless its row has a condition."""
    for number in range(min(run.deadlines_fired, len(guarded))):
        if not guarded[number] and (str(run.pk), str(number)) not in passed:
            yield f"deadline {number + 1} of {_at(run)} has passed without an effect"
    for ref, part in passed:
        if ref == str(run.pk) and part.isdecimal() and int(part) >= run.deadlines_fired:
            yield f"deadline {int(part) + 1} of {_at(run)} has passed, and will pass again"


# Workflows


def _of_workflow(
    definition: type[Workflow],
    process: ProcessInstance,
    runs: Iterable[StepRun],
    some: ProcessSet,
    now: datetime,
) -> Iterator[str]:
    """No deadline ends later than a whole one after now, since a wait that begins again has its deadline from then on.

    A migrated process keeps the deadlines of its earlier version. After the clock has gone back, a deadline keeps its
    moment by the clock as it was.
    """
    plan = definition.static
    if plan is None or some.switches[process.pk]:
        return
    for run in runs:
        vertex = plan.vertices.get(run.node)
        deadline = vertex.step.deadline if vertex is not None else None
        if deadline is None or run.finished_at is not None or not _waits(run):
            continue
        if run.wake_at is None and run.remaining is None:
            if run.kind != StepKind.SLEEP:  # `progress` reports that
                yield f"{_at(run)} has no deadline any more"
            continue
        whole = deadline + max(run.extended or NONE, NONE) + SLACK
        begun = max(now, run.started_at, process.changed_at)
        left = run.remaining if run.wake_at is None else run.wake_at - begun
        if left is not None and left > whole:
            yield f"the deadline of {_at(run)} is too late, but no person has extended it"


def _waits(run: StepRun) -> bool:
    """Whether a visit waits for its first deadline, and nothing else is the matter with it."""
    troubled = run.owner or run.error or run.blocked or run.deadlines_fired
    waiting = run.kind in TIMED and run.status == StepStatus.WAITING
    return waiting and not troubled


def _at(run: StepRun) -> str:
    return f"{run.node} of {run.instance_id}"
