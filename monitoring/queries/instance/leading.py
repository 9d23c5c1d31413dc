"""Which rows of a ledger led to which: a deadline to its passing, a failure to its end, a retry to what followed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    InboxEvent,
    ProcessInstance,
    StepRun,
)

MOST = 200
"""Deadlines that one page looks at."""


def leading_from(
    instance: ProcessInstance,
    page: Iterable[Checkpoint],
    visits: Iterable[StepRun] | None = None,
) -> dict[int, int]:
    """For transitions of a page, by their numbers, the later one that each led to.

    Args:
        instance: the process.
        page: its checkpoints that are shown, newest first.
        visits: all its visits; None if they are not known.
    """
    shown = list(page)
    if not shown:
        return {}
    without = visits is not None and not any(run.deadlines_fired for run in visits)
    found = {} if without else _passed_deadlines(instance, shown)
    found |= _after_failures(shown)
    for checkpoint in shown:
        cause = checkpoint.moved_by
        if cause is not None and cause.kind == CauseKind.OPERATOR:
            found.setdefault(checkpoint.revision, checkpoint.revision + 1)
    return {
        begin: end for begin, end in found.items() if begin < end <= instance.revision
    }


def _passed_deadlines(
    instance: ProcessInstance, shown: list[Checkpoint]
) -> dict[int, int]:
    """Where a step was entered whose deadline passed later."""
    entered = {checkpoint.at: checkpoint.revision for checkpoint in shown}
    runs = instance.step_runs.filter(
        item=None, started_at__range=(min(entered), max(entered)), deadlines_fired__gt=0
    )
    fields = ("pk", "started_at", "deadlines_fired")
    causes = {
        str(Cause.of(CauseKind.DEADLINE, pk, *part)): entered.get(at, 0)
        for pk, at, fired in runs.order_by("pk").values_list(*fields)[:MOST]
        for part in [(), *((number,) for number in range(fired + 1))]
    }
    rows = instance.checkpoints.filter(cause__in=causes).order_by("-revision")
    passed = rows.values_list("cause", "revision")
    return {causes[cause]: revision for cause, revision in passed if causes[cause]}


def _after_failures(shown: list[Checkpoint]) -> dict[int, int]:
    """Where something failed that was settled later."""
    runs = dict[int, int]()
    events = dict[int, int]()
    for checkpoint in shown:
        cause = checkpoint.moved_by
        if cause is None or not cause.kind.is_failure:
            continue
        if cause.kind == CauseKind.STEP_FAILED:
            runs[checkpoint.revision] = int(cause.ref)
        elif cause.kind == CauseKind.EVENT_FAILED:
            events[checkpoint.revision] = int(cause.ref)
    left = _revisions(runs, dict(_left(runs.values())))
    return left | _revisions(events, dict(_moved(events.values())))


def _revisions(failed: Mapping[int, int], settled: Mapping[int, int]) -> dict[int, int]:
    return {at: settled[key] for at, key in failed.items() if key in settled}


def _left(keys: Iterable[int]) -> Iterable[tuple[int, int]]:
    rows = StepRun.objects.filter(pk__in=keys, left__isnull=False)
    return rows.values_list("pk", "left")  # type: ignore[return-value]  # those without are left out


def _moved(keys: Iterable[int]) -> Iterable[tuple[int, int]]:
    rows = InboxEvent.objects.filter(pk__in=keys, revision__isnull=False)
    return rows.values_list("pk", "revision")
