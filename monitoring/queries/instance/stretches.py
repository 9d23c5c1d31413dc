"""What a visit is made of, as far as rows tell it: attempts, the time between them, and waiting for people to act.

The first failure of a series of attempts is a transition; that a visit fails for good opens an incident, and whoever
lets it go on resolves that. When the attempts between the first failure and the last one failed, no row keeps: only how
many there were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q

from monitoring.queries.instance.axis import Axis
from orchestrator.models import (
    Cause,
    CauseKind,
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
)

WAITING = (StepKind.WAIT, StepKind.ASK, StepKind.SLEEP, StepKind.JOIN, "")

MOST = 400
"""Failures and incidents that one page looks at."""

HIGHEST = "9" * 10
"""No revision is higher, also as a text."""

SHOWN_AS_THEY_ARE = ("failed", "handled", "retrying", "cancelled")

TONES = {
    Status.RETRYING: "retrying",
    Status.FAILED: "stopped",
    Status.PAUSED: "paused",
}
"""How a process looks that does not simply go on."""


@dataclass(frozen=True)
class Stretch:
    """A part of a bar, in units of the axis.

    Args:
        tone: its colour class.
        word: what it is, for people.
        x: where it begins.
        width: how long it is; less than one for what took no time, which is a point.
    """

    tone: str
    word: str
    x: float
    width: float

    @property
    def is_point(self) -> bool:
        return self.width < 1.0


class VisitTurn(NamedTuple):
    """A moment at which a visit goes on in another way: "again", "stopped" or "on"."""

    at: datetime
    way: str


VisitTurns = Mapping[int, Sequence[VisitTurn]]
"""Of each visit, by its key; those of one visit in order."""


def turns_of(instance: ProcessInstance, runs: Iterable[StepRun]) -> VisitTurns:
    """When attempts of these visits failed, when they stood still, and when people let them go on.

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
    tried = [run.pk for run in shown if _may_have_failed(run, found)]
    for run, at, status in _failures(instance, tried):
        if status != Status.FAILED:
            found[run].add(VisitTurn(at, "again"))
    # At one moment a visit goes on before it fails anew.
    order = {"on": 0, "again": 1, "stopped": 2}
    return {
        run: sorted(turns, key=lambda turn: (turn.at, order[turn.way]))
        for run, turns in found.items()
    }


def _may_have_failed(run: StepRun, known: Mapping[int, object]) -> bool:
    """Whether one looks for failures of it: what waits for others has none, but for its deadlines."""
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
    """The transitions of failed attempts: each is found by the beginning of its cause, along an index."""
    some = Q()
    for run in runs:
        begin = str(Cause.of(CauseKind.STEP_FAILED, run, ""))
        some |= Q(instance=instance, cause__range=(f"{begin}:", f"{begin}:{HIGHEST}"))
    if not some:
        return
    wanted = set(runs)
    for checkpoint in instance.checkpoints.filter(some).only("cause", "at", "status")[
        :MOST
    ]:
        key = checkpoint.step_run
        if key is not None and key in wanted:
            yield key, checkpoint.at, checkpoint.status


def stretches_of(
    run: StepRun, status: str, until: datetime, turns: Sequence[VisitTurn], axis: Axis
) -> list[Stretch]:
    """What a visit is made of, the first part first.

    Args:
        run: the visit.
        status: how it stands, as shown.
        until: when it ended, or now.
        turns: what is known of its attempts, in order.
        axis: the axis.
    """
    waits = run.kind in WAITING or run.child_id is not None
    tone = "waiting" if waits else "attempt"
    word = tone if run.finished_at is None or waits else status
    found: list[Stretch] = []
    begin, way = run.started_at, ""
    for turn in turns:
        if not run.started_at < turn.at < until or turn.way == way:
            continue
        found.append(_stretch(*_before(way, waits), begin, turn.at, axis))
        begin, way = turn.at, turn.way
    if way in ("again", "stopped"):
        found.append(_stretch(*_after(way), begin, until, axis))
        begin = until
    if run.finished_at is not None or way not in ("again", "stopped"):
        said = status if found else word
        found.append(_stretch(_tone(tone, status), said, begin, until, axis))
    return found


def _before(way: str, waits: bool) -> tuple[str, str]:
    """Tone and word of what a turn has ended: an attempt that failed, unless it was something else."""
    if way in ("again", "stopped"):
        return _after(way)
    return ("waiting", "waiting") if waits else ("failed", "failed")


def _after(way: str) -> tuple[str, str]:
    return ("retrying", "retrying") if way == "again" else ("stopped", "failed")


def _tone(tone: str, status: str) -> str:
    return status if status in SHOWN_AS_THEY_ARE else tone


def _stretch(
    tone: str, word: str, begin: datetime, end: datetime, axis: Axis
) -> Stretch:
    x = axis.x(begin)
    return Stretch(tone, word, x, max(axis.x(end) - x, 0.0))


class StatusSpan(NamedTuple):
    """How long a process had a status without a break."""

    status: str
    begin: datetime
    end: datetime


def troubled_spans(
    told: Iterable[tuple[datetime, str]], until: datetime
) -> list[StatusSpan]:
    """When a process was tried again, stood still because something had failed, or was paused.

    Args:
        told: its transitions, the first one first: when, and its status from then on.
        until: when the last status ended, or now.
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
    """It on the axis."""
    tone = TONES[Status(span.status)]
    return _stretch(tone, span.status, span.begin, max(span.end, span.begin), axis)
