"""The parts of a visit, from stored rows: attempts, delays between attempts, and waits for people.

The first failure of a series of attempts is a transition. A final failure opens an incident, which a retry resolves.
The attempts between these two have no rows: the visit only counts them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q

from monitoring.process.steps.axis import Axis
from orchestrator.models import (
    Cause,
    CauseKind,
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

WAITING = (StepKind.WAIT, StepKind.ASK, StepKind.SLEEP, StepKind.JOIN, "")

MOST = 400
"""The maximum number of failures and incidents that one page reads."""

HIGHEST = "9" * 10
"""A number higher than every revision, also as text."""

SHOWN_AS_THEY_ARE = ("failed", "handled", "retrying", "cancelled")

TONES = {Status.RETRYING: "retrying", Status.FAILED: "stopped", Status.PAUSED: "paused"}
"""The colours of a process in trouble or paused, by status."""


@dataclass(frozen=True)
class Stretch:
    """A part of a bar, in units of the axis.

    Args:
        tone: its colour class.
        word: its label.
        x: its beginning.
        width: its length; less than 1 for a point without a duration.
    """

    tone: str
    word: str
    x: float
    width: float

    @property
    def is_point(self) -> bool:
        return self.width < 1.0


class VisitTurn(NamedTuple):
    """A moment at which a visit changes: "again" (retried), "stopped" (failed for good) or "on" (continued)."""

    at: datetime
    way: str


VisitTurns = Mapping[int, Sequence[VisitTurn]]
"""The turns of each visit in order, by the visit's key."""


def turns_of(instance: ProcessInstance, runs: Iterable[StepRun]) -> VisitTurns:
    """Find when attempts failed, when visits failed for good, and when people continued them.

    Args:
        instance: their process.
        runs: the visits.
    """
    shown = list(runs)
    found: dict[int, set[VisitTurn]] = defaultdict(set)
    for run, opened, resolved in _incidents(shown):
        found[run].add(VisitTurn(opened, "stopped"))
        if resolved is not None:
            found[run].add(VisitTurn(resolved, "on"))
    ended = {run.pk: run.finished_at for run in shown if _may_have_failed(run, found)}
    for run, at, status in _failures(instance, list(ended)):
        # The last failure of an ended visit was handled, and not tried again.
        if status != Status.FAILED and at != ended[run]:
            found[run].add(VisitTurn(at, "again"))
    # A visit that continues and fails at one moment continues first.
    order = {"on": 0, "again": 1, "stopped": 2}
    return {
        run: sorted(turns, key=lambda turn: (turn.at, order[turn.way]))
        for run, turns in found.items()
    }


def _may_have_failed(run: StepRun, known: Mapping[int, object]) -> bool:
    """Whether the visit can have failed: a waiting visit fails only in its deadline."""
    return run.kind not in WAITING or run.attempt > 0 or run.pk in known


def _incidents(
    runs: Sequence[StepRun],
) -> Iterator[tuple[int, datetime, datetime | None]]:
    rows = Incident.objects.filter(step_run__in=[run.pk for run in runs])
    told = rows.order_by("-pk").values_list("step_run", "opened_at", "resolved_at")
    for run, opened, resolved in told[:MOST]:
        if run is not None:
            yield run, opened, resolved


def _failures(
    instance: ProcessInstance, runs: Sequence[int]
) -> Iterator[tuple[int, datetime, str]]:
    """Yield the transitions of failed attempts, found by the beginning of their cause along an index."""
    some = Q()
    for run in runs:
        begin = str(Cause.of(CauseKind.STEP_FAILED, run, ""))
        some |= Q(instance=instance, cause__range=(f"{begin}:", f"{begin}:{HIGHEST}"))
    if not some:
        return
    wanted = set(runs)
    rows = instance.checkpoints.filter(some).only("cause", "at", "status")
    for checkpoint in rows[:MOST]:
        key = checkpoint.step_run
        if key is not None and key in wanted:
            yield key, checkpoint.at, checkpoint.status


def stretches_of(
    run: StepRun, status: str, until: datetime, turns: Sequence[VisitTurn], axis: Axis
) -> list[Stretch]:
    """Split a visit into its parts, the first part first.

    Args:
        run: the visit.
        status: its shown status.
        until: its end, or now.
        turns: the known turns of its attempts, in order.
        axis: the axis of the bars.
    """
    waits = run.kind in WAITING or run.child_id is not None or _polls(run, until)
    tone = "waiting" if waits else "attempt"
    word = tone if run.finished_at is None or waits else status
    found: list[Stretch] = []
    begin, way = run.started_at, ""
    for turn in turns:
        if not run.started_at < turn.at < until or turn.way == way:
            continue
        found.append(_stretch(*_part_before(way, waits), begin, turn.at, axis))
        begin, way = turn.at, turn.way
    if way in ("again", "stopped"):
        found.append(_stretch(*_part_after(way), begin, until, axis))
        begin = until
    if run.finished_at is not None or way not in ("again", "stopped"):
        said = status if found else word
        found.append(_stretch(_tone(tone, status), said, begin, until, axis))
    return found


def _polls(run: StepRun, now: datetime) -> bool:
    """Whether a step is called later, without a failed attempt."""
    later = run.wake_at is not None and run.wake_at > now
    return later and run.status == StepStatus.READY


def _part_before(way: str, waits: bool) -> tuple[str, str]:
    """Return tone and word of the part that a turn ends: a failed attempt by default."""
    if way in ("again", "stopped"):
        return _part_after(way)
    return ("waiting", "waiting") if waits else ("failed", "failed")


def _part_after(way: str) -> tuple[str, str]:
    return ("retrying", "retrying") if way == "again" else ("stopped", "failed")


def _tone(tone: str, status: str) -> str:
    return status if status in SHOWN_AS_THEY_ARE else tone


def _stretch(
    tone: str, word: str, begin: datetime, end: datetime, axis: Axis
) -> Stretch:
    x = axis.x(begin)
    return Stretch(tone, word, x, max(axis.x(end) - x, 0.0))


class StatusSpan(NamedTuple):
    """A time in which a process kept one status."""

    status: str
    begin: datetime
    end: datetime


def troubled_spans(
    told: Iterable[tuple[datetime, str]], until: datetime
) -> list[StatusSpan]:
    """Find when a process was retrying, failed or paused.

    Args:
        told: the time and the new status of each transition, the first one first.
        until: the end of the last status, or now.
    """
    spans: list[StatusSpan] = []
    for at, status in told:
        if spans and spans[-1].status == status:
            continue
        if spans:
            spans[-1] = spans[-1]._replace(end=at)
        spans.append(StatusSpan(status, at, until))
    return [span for span in spans if span.status in TONES]


def stretch_of_span(span: StatusSpan, axis: Axis) -> Stretch:
    """Return a time with one status as a part of a bar."""
    tone = TONES[Status(span.status)]
    return _stretch(tone, span.status, span.begin, max(span.end, span.begin), axis)
