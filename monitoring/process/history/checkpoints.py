"""A page of a process's checkpoints, with events, commands and consequences of their transitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from django.db.models import QuerySet

from monitoring.process.revision.entries import ShownCommand
from monitoring.process.revision.moment import ProcessMoment
from orchestrator.containers import group_by_key
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    Delivery,
    InboxEvent,
    ProcessInstance,
    StepRun,
    in_issue_order,
)

MOST = 200
"""The maximum number of deadlines that one page reads."""


@dataclass(frozen=True)
class Checkpoints:
    """A page of checkpoints, newest first.

    `next` has the next older checkpoint, if there is one; `newest` says that there are no newer checkpoints.
    """

    page: list[Checkpoint]
    next: list[Checkpoint]
    newest: bool

    @property
    def revisions(self) -> tuple[int, int]:
        """The lowest and the highest revision; an empty span for an empty page."""
        return (self.page[-1].revision, self.page[0].revision) if self.page else (0, -1)

    @property
    def times(self) -> tuple[datetime, datetime]:
        """The earliest and the latest time of a page that is not empty; the clock may have been set back."""
        times = [checkpoint.at for checkpoint in self.page]
        return min(times), max(times)

    @property
    def rows(self) -> Iterable[tuple[Checkpoint, Checkpoint | None]]:
        """Each checkpoint with the one before it."""
        return zip_longest(self.page, [*self.page, *self.next][1:])


def checkpoints_of(
    rows: QuerySet[Checkpoint], before: int | None, size: int
) -> Checkpoints:
    """Return a page of a process's checkpoints with revisions below `before`."""
    rows = rows.order_by("-revision")
    if before is not None:
        rows = rows.filter(revision__lt=before)
    found = list(rows[: size + 1])
    return Checkpoints(found[:size], found[size:], before is None)


def commands_of(
    instance: ProcessInstance, page: Checkpoints
) -> dict[int, list[ShownCommand]]:
    """Return the commands of a page's transitions, by revision."""
    rows = instance.commands.filter(revision__range=page.revisions)
    rows = rows.exclude(delivery=Delivery.REACTION)
    found = group_by_key(
        (one.revision, ShownCommand(one)) for one in in_issue_order(rows)
    )
    for issued in found.values():
        holders = {one.command.holds: one for one in issued}
        for one in issued:
            holder = holders.get(one.command.pk)
            if holder is not None:
                one.held_by = holder.held_by if holder.is_held else holder.command
    return found


def causing_events(
    instance: ProcessInstance, page: Checkpoints
) -> dict[int, InboxEvent]:
    """Return the events that caused a page's transitions, by revision."""
    causes = (checkpoint.moved_by for checkpoint in page.page)
    keys = [int(one.ref) for one in causes if one and one.kind == CauseKind.EVENT]
    first, last = page.revisions
    return {
        event.revision: event
        for event in instance.events.filter(pk__in=keys)
        if event.revision is not None and first <= event.revision <= last
    }


def consequences_of(moment: ProcessMoment, shown: list[Checkpoint]) -> dict[int, int]:
    """Map transitions of a page to their later consequences, until a moment.

    A deadline leads to its passing, a failure to its settlement, an action to the next transition.
    """
    if not shown:
        return {}
    found = _passed_deadlines(moment, shown) | _settlements(shown)
    for checkpoint in shown:
        cause = checkpoint.moved_by
        if cause is not None and cause.kind == CauseKind.OPERATOR:
            found.setdefault(checkpoint.revision, checkpoint.revision + 1)
    return {
        begin: end for begin, end in found.items() if begin < end <= moment.revision
    }


def _passed_deadlines(moment: ProcessMoment, shown: list[Checkpoint]) -> dict[int, int]:
    """Map the entry of a step to the passing of its deadline."""
    known = not moment.is_workflow and moment.has_all_visits
    if known and not any(run.deadlines_fired for run in moment.visits):
        return {}
    entered = {checkpoint.at: checkpoint.revision for checkpoint in shown}
    runs = moment.present.step_runs.filter(
        item=None, started_at__range=(min(entered), max(entered)), deadlines_fired__gt=0
    )
    fields = ("pk", "started_at", "deadlines_fired")
    causes = {
        str(Cause.of(CauseKind.DEADLINE, pk, *part)): entered.get(at, 0)
        for pk, at, fired in runs.order_by("pk").values_list(*fields)[:MOST]
        for part in [(), *((number,) for number in range(fired + 1))]
    }
    rows = moment.present.checkpoints.filter(cause__in=causes).order_by("-revision")
    passed = rows.values_list("cause", "revision")
    return {causes[cause]: revision for cause, revision in passed if causes[cause]}


def _settlements(shown: list[Checkpoint]) -> dict[int, int]:
    """Map the failure of a step or an event to its settlement."""
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
    left = _revisions(runs, dict(_visit_ends(runs.values())))
    return left | _revisions(events, dict(_event_ends(events.values())))


def _revisions(failed: Mapping[int, int], settled: Mapping[int, int]) -> dict[int, int]:
    return {at: settled[key] for at, key in failed.items() if key in settled}


def _visit_ends(keys: Iterable[int]) -> Iterable[tuple[int, int]]:
    rows = StepRun.objects.filter(pk__in=keys, left__isnull=False)
    return rows.values_list("pk", "left")  # type: ignore[return-value]  # those without are left out


def _event_ends(keys: Iterable[int]) -> Iterable[tuple[int, int]]:
    rows = InboxEvent.objects.filter(pk__in=keys, revision__isnull=False)
    return rows.values_list("pk", "revision")
