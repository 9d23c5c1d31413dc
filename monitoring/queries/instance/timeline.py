"""The life of a process on one axis: its transitions as moments to go to, and its steps as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.moments import clock, exact
from monitoring.queries.instance.axis import WIDTH, Axis, axis_of
from monitoring.queries.instance.past import PastMoment
from monitoring.queries.instance.step_states import shown_status
from monitoring.statuses import look
from orchestrator.models import (
    CauseKind,
    Definition,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)

KNOTS = 240
"""Transitions whose places are sent to the page; those between them are found by their numbers."""

BARS = 160
"""Visits that are drawn: those around the moment that is looked at."""

ROWS = 40
"""Steps that have a row of their own."""

FAILURES = 400
"""Transitions that are looked at for attempts that failed."""

TROUBLE = (StepStatus.FAILED, StepStatus.RETRYING)

WAITING = (StepKind.WAIT, StepKind.ASK, StepKind.SLEEP, StepKind.JOIN, "")


@dataclass(frozen=True)
class Segment:
    """A part of a visit: an attempt, a wait, or the time between attempts. In units of the axis.

    Args:
        tone: its colour class.
        word: what it is, for people.
        x: where it begins.
        width: how long it is; 0 for what took no time, which is a point.
    """

    tone: str
    word: str
    x: float
    width: float

    @property
    def is_point(self) -> bool:
        return self.width < 1.0


@dataclass(frozen=True)
class VisitBar:
    """One visit of a step, or all elements of a map.

    Args:
        number: which visit of its step it is.
        status: how it stands, as shown.
        began: when.
        lasted: how long; negative where two clocks disagree.
        is_open: whether it goes on.
        segments: what it is made of, the first one first.
        attempts: how often it was tried.
        elements: of a map: how many there are.
    """

    number: int
    status: str
    began: datetime
    lasted: timedelta
    is_open: bool
    segments: Sequence[Segment]
    attempts: int = 0
    elements: int | None = None

    @property
    def said(self) -> str:
        """It in words: which visit, when, how long, how it stands, and what is odd about it."""
        words = [
            f"#{self.number} {look(self.status).word}",
            clock(self.began),
            exact(abs(self.lasted)),
        ]
        if self.is_open:
            words.append(_("still going on"))
        if self.attempts:
            words.append(_("%(number)s attempts") % {"number": self.attempts})
        if self.elements is not None:
            words.append(_("%(number)s elements") % {"number": self.elements})
        if self.is_skewed:
            words.append(_("it ended before it began: two clocks disagree"))
        return ", ".join(words)

    @property
    def is_skewed(self) -> bool:
        return self.lasted < timedelta(0)


@dataclass
class StepLane:
    """A step with its visits."""

    label: str
    bars: list[VisitBar] = field(default_factory=list)

    @property
    def elements(self) -> int:
        """Of a map: how many there are in all its visits."""
        return sum(bar.elements or 0 for bar in self.bars)

    @property
    def said(self) -> str:
        """The row in words."""
        number = len(self.bars)
        visits = ngettext("%(number)s visit", "%(number)s visits", number)
        last = self.bars[-1].said if self.bars else ""
        return f"{self.label}: {visits % {'number': number}}; {last}"


@dataclass(frozen=True)
class Knot:
    """A transition whose place on the axis is known."""

    revision: int
    at: datetime
    x: float


@dataclass(frozen=True)
class Timeline:
    """All of it.

    Args:
        axis: where moments are.
        knots: transitions by their numbers.
        rows: the steps, in the order in which they began.
        more_rows: steps that are not drawn.
        cut: whether only visits around the moment are drawn.
        moment: where the moment is that is looked at; None for now.
        live: whether the process goes on.
    """

    axis: Axis
    knots: Sequence[Knot]
    rows: Sequence[StepLane]
    more_rows: int
    cut: bool
    moment: float | None
    live: bool
    earlier: int = 0
    """The transition before the moment; 0 if there is none."""
    later: str = ""
    """The query that leads to the one after the moment; empty if that is now."""

    @property
    def place(self) -> float:
        """Where the moment is on the axis; now is at its end."""
        return WIDTH if self.moment is None else self.moment

    def to_json(self) -> list[list[float]]:
        """The knots for the page: number, seconds since the epoch, place."""
        return [
            [knot.revision, round(knot.at.timestamp(), 3), round(knot.x, 2)]
            for knot in self.knots
        ]


def timeline_of(
    instance: ProcessInstance,
    labels: Mapping[str, str],
    moment: PastMoment | None = None,
) -> Timeline:
    """Reads the timeline of a process.

    Args:
        instance: the process as it is now.
        labels: its steps as people read them.
        moment: that is looked at; None for now.
    """
    now = timezone.now()
    marks = _marks(instance)
    live = instance.finished_at is None
    times = [instance.started_at, *(at for _, at in marks)]
    axis = axis_of([*times, now] if live else times)
    runs = _runs(instance, moment)
    rows = _rows(runs[:BARS], instance, labels, axis, now)
    return Timeline(
        axis,
        [Knot(revision, at, axis.x(at)) for revision, at in marks],
        rows[:ROWS],
        max(len(rows) - ROWS, 0),
        len(runs) > BARS,
        axis.x(moment.at) if moment is not None else None,
        live,
        (moment or instance).revision - 1,
        f"at={moment.after}" if moment is not None and moment.newer > 1 else "",
    )


def _marks(instance: ProcessInstance) -> list[tuple[int, datetime]]:
    """Transitions evenly from all of a process's history, the first and the last among them."""
    last = instance.revision
    step = max(-(-last // KNOTS), 1)
    wanted = sorted({*range(1, last + 1, step), last})
    rows = instance.checkpoints.filter(revision__in=wanted)
    return list(rows.order_by("revision").values_list("revision", "at"))


def _runs(instance: ProcessInstance, moment: PastMoment | None) -> list[StepRun]:
    """The visits around a moment, one more than are drawn if there are more."""
    rows = instance.step_runs.filter(item=None).exclude(status=StepStatus.NOT_TAKEN)
    rows = rows.exclude(kind=StepKind.JOIN)
    rows = rows.defer("result", "saved", "element", "error", "progress")
    if moment is None:
        found = list(rows.order_by("-started_at", "-pk")[: BARS + 1])
        return sorted(found, key=_beginning)
    before = rows.filter(started_at__lte=moment.at).order_by("-started_at", "-pk")
    after = rows.filter(started_at__gt=moment.at).order_by("started_at", "pk")
    found = list(before[: BARS + 1])
    found += list(after[: max(BARS // 2, BARS + 1 - len(found))])
    return sorted(found, key=_beginning)


def _beginning(run: StepRun) -> tuple[datetime, int]:
    return run.started_at, run.pk


def _rows(
    runs: Sequence[StepRun],
    instance: ProcessInstance,
    labels: Mapping[str, str],
    axis: Axis,
    now: datetime,
) -> list[StepLane]:
    failures = _failures(instance, runs)
    rows: dict[str, StepLane] = {}
    for run in runs:
        row = rows.setdefault(run.node, StepLane(labels.get(run.node, run.node)))
        number = run.visit if run.kind else len(row.bars) + 1
        known = failures.get(run.pk, [])
        row.bars.append(_bar(run, instance, axis, now, known, number))
    return list(rows.values())


def _bar(
    run: StepRun,
    instance: ProcessInstance,
    axis: Axis,
    now: datetime,
    failures: Sequence[datetime],
    number: int,
) -> VisitBar:
    until = run.finished_at or max(now, run.started_at)
    status = shown_status(run, instance)
    return VisitBar(
        number,
        status,
        run.started_at,
        until - run.started_at,
        run.finished_at is None,
        segments_of(run, status, until, failures, axis),
        run.attempt if run.attempt > 1 else 0,
        run.expected if run.kind == StepKind.MAP else None,
    )


def segments_of(
    run: StepRun,
    status: str,
    until: datetime,
    failures: Sequence[datetime],
    axis: Axis,
) -> list[Segment]:
    """What a visit is made of.

    Args:
        run: the visit.
        status: how it stands, as shown.
        until: when it ended, or now.
        failures: when attempts of it failed, as far as that is known.
        axis: the axis.
    """
    waits = run.kind in WAITING or run.child_id is not None
    tone = "waiting" if waits else "attempt"
    word = tone if run.finished_at is None or waits else status
    inside = [at for at in failures if run.started_at < at < until]
    if not inside:
        return [_segment(_tone(tone, status), word, run.started_at, until, axis)]
    found = [_segment("failed", "failed", run.started_at, inside[0], axis)]
    found.append(_segment("retrying", "retrying", inside[0], until, axis))
    if run.finished_at is not None:
        found.append(_segment(_tone(tone, status), status, until, until, axis))
    return found


def _tone(tone: str, status: str) -> str:
    return status if status in ("failed", "handled", "retrying", "cancelled") else tone


def _segment(
    tone: str, word: str, begin: datetime, end: datetime, axis: Axis
) -> Segment:
    x = axis.x(begin)
    return Segment(tone, word, x, max(axis.x(end) - x, 0.0))


def _failures(
    instance: ProcessInstance, runs: Sequence[StepRun]
) -> dict[int, list[datetime]]:
    """When attempts of these visits failed, as far as a transition tells of it."""
    keys = {run.pk for run in runs if run.attempt > 1 or run.status in TROUBLE}
    if not keys or instance.definition.kind != Definition.Kind.WORKFLOW:
        return {}
    revisions = [run.entered for run in runs if run.pk in keys]
    rows = instance.checkpoints.filter(revision__gte=min(revisions))
    rows = rows.filter(cause__startswith=CauseKind.STEP_FAILED.value)
    found: dict[int, list[datetime]] = {}
    for checkpoint in rows.defer("data").order_by("revision")[:FAILURES]:
        run = checkpoint.step_run
        if run in keys and run is not None:
            found.setdefault(run, []).append(checkpoint.at)
    return found
