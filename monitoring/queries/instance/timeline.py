"""The life of a process on one axis: its transitions as moments to go to, and its steps as bars.

Of a long history the bars are those around the moment, on an axis of their own: on that of the whole life they would
lie on top of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.moments import clock, exact
from monitoring.queries.instance.axis import WIDTH, Axis, axis_of
from monitoring.queries.instance.past import NEWEST, PastMoment
from monitoring.queries.instance.step_states import shown_status
from monitoring.queries.instance.stretches import (
    StatusSpan,
    Stretch,
    VisitTurn,
    stretch_of_span,
    stretches_of,
    troubled_spans,
    turns_of,
)
from monitoring.queries.instance.transitions import transitions_of
from monitoring.statuses import look
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus

KNOTS = 240
"""Transitions whose places are sent to the page; those between them are found by their numbers."""

BARS = 160
"""Visits that are drawn: those around the moment that is looked at."""

ROWS = 40
"""Steps that have a row of their own."""

SAID = 5
"""Bars of the process itself that its row says in words, the last ones."""

FIRST = ("item", "started_at", "pk")
"""The order of `NEWEST` the other way round."""


@dataclass(frozen=True)
class VisitBar:
    """One visit of a step, or all elements of a map.

    Args:
        number: which visit of its step it is.
        status: how it stands, as shown.
        began: when.
        lasted: how long; negative where two clocks disagree.
        is_open: whether it goes on.
        stretches: what it is made of, the first one first.
        attempts: how often it was tried.
        elements: of a map: how many there are.
        next_try: when it is tried again.
    """

    number: int
    status: str
    began: datetime
    lasted: timedelta
    is_open: bool
    stretches: Sequence[Stretch]
    attempts: int = 0
    elements: int | None = None
    next_try: datetime | None = None

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
        if self.next_try is not None:
            words.append(_("the next one at %(time)s") % {"time": clock(self.next_try)})
        if self.elements is not None:
            words.append(_("%(number)s elements") % {"number": self.elements})
        if self.lasted < timedelta(0):
            words.append(_("it ended before it began: two clocks disagree"))
        return ", ".join(words)


@dataclass(frozen=True)
class StatusBar:
    """A time in which the whole process did not simply go on."""

    span: StatusSpan
    is_open: bool
    stretches: Sequence[Stretch]

    @property
    def said(self) -> str:
        """It in words."""
        lasted = exact(max(self.span.end - self.span.begin, timedelta(0)))
        words = [str(look(self.span.status).word), clock(self.span.begin), lasted]
        return ", ".join([*words, *([_("still going on")] if self.is_open else [])])


@dataclass
class StatusLane:
    """The process itself: when it was tried again, had failed, or was paused."""

    label: str
    bars: list[StatusBar]
    elements = 0

    @property
    def said(self) -> str:
        """The row in words."""
        return f"{self.label}: {'; '.join(bar.said for bar in self.bars[-SAID:])}"


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
        near: where moments are on the bars' axis, which is the same unless only some visits are drawn.
        rows: the steps, in the order in which they began, and before them the process itself if it was in trouble.
        more_rows: steps that are not drawn.
        cut: whether only visits around the moment are drawn.
        moment: that is looked at; None for now.
        live: whether the process goes on.
    """

    axis: Axis
    knots: Sequence[Knot]
    near: Axis
    rows: Sequence[StepLane | StatusLane]
    more_rows: int
    cut: bool
    moment: datetime | None
    live: bool
    earlier: int = 0
    """The transition before the moment; 0 if there is none."""
    later: str = ""
    """The query that leads to the one after the moment; empty if that is now."""

    @property
    def place(self) -> float:
        """Where the moment is on the axis; now is at its end."""
        return WIDTH if self.moment is None else self.axis.x(self.moment)

    @property
    def near_place(self) -> float:
        """Where it is on the axis of the bars."""
        return WIDTH if self.moment is None else self.near.x(self.moment)

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
    newest: Sequence[StepRun] | None = None,
) -> Timeline:
    """Reads the timeline of a process.

    Args:
        instance: the process as it is now.
        labels: its steps as people read them.
        moment: that is looked at; None for now.
        newest: its newest visits if they are read, more than are drawn if there are; of a process manager, for now.
    """
    now = timezone.now()
    marks = _marks(instance)
    live = instance.finished_at is None
    times = [instance.started_at, *(at for _, at in marks)]
    axis = axis_of([*times, now] if live else times)
    runs, cut = _runs(instance, moment, newest)
    near = _axis_of_bars(runs, moment, now) if cut else axis
    rows = _rows(runs, instance, labels, near, now)
    return Timeline(
        axis,
        [Knot(revision, at, axis.x(at)) for revision, at in marks],
        near,
        [*_status_lane(instance, moment, near, now), *rows[:ROWS]],
        max(len(rows) - ROWS, 0),
        cut,
        moment.at if moment is not None else None,
        live,
        (moment or instance).revision - 1,
        f"at={moment.after}" if moment is not None and moment.newer > 1 else "",
    )


def _marks(instance: ProcessInstance) -> list[tuple[int, datetime]]:
    """Transitions evenly from all of a process's history, the first and the last among them."""
    last = instance.revision
    step = max(-(-last // KNOTS), 1)
    wanted = {*range(1, last + 1, step), last}
    rows = transitions_of(instance).numbered(wanted)
    return [(row.revision, row.at) for row in rows]


def _runs(
    instance: ProcessInstance,
    moment: PastMoment | None,
    newest: Sequence[StepRun] | None,
) -> tuple[list[StepRun], bool]:
    """The visits around a moment, and whether there are others."""
    if newest is not None:
        return list(newest[-BARS:]), len(newest) > BARS
    rows = instance.step_runs.filter(item=None).exclude(status=StepStatus.NOT_TAKEN)
    rows = rows.exclude(kind=StepKind.JOIN)
    rows = rows.defer("result", "saved", "element", "error", "progress")
    until = rows if moment is None else rows.filter(started_at__lte=moment.at)
    before = list(until.order_by(*NEWEST)[: BARS + 1])[::-1]
    after: list[StepRun] = []
    if moment is not None:
        later = rows.filter(started_at__gt=moment.at).order_by(*FIRST)
        after = list(later[: BARS + 1])
    number = max(BARS - len(after), BARS // 2)  # half of those drawn, if there are
    drawn = before[-number:]
    drawn += after[: BARS - len(drawn)]
    return drawn, len(drawn) < len(before) + len(after)


def _axis_of_bars(
    runs: Sequence[StepRun], moment: PastMoment | None, now: datetime
) -> Axis:
    """The axis of the visits that are drawn: from the beginning of the first to that of the last, or to now."""
    begin, end = runs[0].started_at, runs[-1].started_at
    end = max(end, moment.at) if moment is not None else end
    if moment is None and any(run.finished_at is None for run in runs):
        end = max(end, now)
    ends = (run.finished_at for run in runs if run.finished_at is not None)
    inside = [at for at in ends if begin < at < end]
    return axis_of([begin, end, *(run.started_at for run in runs), *inside])


def _status_lane(
    instance: ProcessInstance, moment: PastMoment | None, axis: Axis, now: datetime
) -> list[StatusLane]:
    """The process itself, if it was in trouble or paused around the moment."""
    last = (moment or instance).revision
    told = transitions_of(instance).between(last - BARS + 1, last + BARS // 2)
    if not told:
        return []
    ongoing = told[-1].revision == instance.revision
    until = (instance.finished_at or now) if ongoing else max(row.at for row in told)
    spans = troubled_spans(((row.at, row.status) for row in told), until)
    bars = [
        StatusBar(
            span,
            ongoing and not instance.finished_at and span.end == until,
            [stretch_of_span(span, axis)],
        )
        for span in spans
        if axis.times[0] < span.end and span.begin <= axis.times[-1]
    ]
    return [StatusLane(_("Process"), bars)] if bars else []


def _rows(
    runs: Sequence[StepRun],
    instance: ProcessInstance,
    labels: Mapping[str, str],
    axis: Axis,
    now: datetime,
) -> list[StepLane]:
    turns = turns_of(instance, runs)
    rows: dict[str, StepLane] = {}
    for run in runs:
        row = rows.setdefault(run.node, StepLane(labels.get(run.node, run.node)))
        number = run.visit if run.kind else len(row.bars) + 1
        known = turns.get(run.pk, [])
        row.bars.append(_bar(run, instance, axis, now, known, number))
    return list(rows.values())


def _bar(
    run: StepRun,
    instance: ProcessInstance,
    axis: Axis,
    now: datetime,
    turns: Sequence[VisitTurn],
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
        stretches_of(run, status, until, turns, axis),
        run.attempt if run.attempt > 1 else 0,
        run.expected if run.kind == StepKind.MAP else None,
        run.wake_at if run.status == StepStatus.RETRYING and not run.owner else None,
    )
