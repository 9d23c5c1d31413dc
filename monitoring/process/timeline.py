"""The life of a process on one axis: its transitions as moments to choose, and its steps as bars.

The bars of a long history are those around the moment. They have their own axis, since they would overlap on the axis
of the whole life.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.base.moments import clock, exact
from monitoring.base.statuses import look
from monitoring.process.revision.moment import NEWEST, ProcessMoment
from monitoring.process.revision.transitions import Transition
from monitoring.process.steps.axis import WIDTH, Axis, axis_of
from monitoring.process.steps.step_states import shown_status
from monitoring.process.steps.visit_parts import (
    StatusSpan,
    Stretch,
    stretch_of_span,
    stretches_of,
    troubled_spans,
    turns_of,
)
from orchestrator.models import StepKind, StepRun, StepStatus

KNOTS = 240
"""The maximum number of transitions whose places the page has; it finds the others by their numbers."""

BARS = 160
"""The maximum number of visits that the page draws, around the moment."""

ROWS = 40
"""The maximum number of steps that have a row."""

SAID = 5
"""The maximum number of bars of the process itself that its row has in words, the last ones."""

FIRST = ("item", "started_at", "pk")
"""The reverse order of `NEWEST`."""


@dataclass(frozen=True)
class TimelineBar:
    """A visit of a step, or a time in which the process was retrying, failed or paused.

    Args:
        said: the bar in words.
        is_open: whether it has not ended.
        stretches: its parts, the first one first.
        elements: the number of a map's elements.
    """

    said: str
    is_open: bool
    stretches: Sequence[Stretch]
    elements: int = 0


@dataclass(frozen=True)
class TimelineLane:
    """A step with its visits, or the process itself.

    Args:
        label: the name of the step.
        said: the row in words.
        bars: the first one first.
    """

    label: str
    said: str
    bars: list[TimelineBar]

    @property
    def elements(self) -> int:
        """The number of a map's elements in all its visits."""
        return sum(bar.elements for bar in self.bars)


@dataclass(frozen=True)
class Timeline:
    """The timeline of a process.

    Args:
        moment: the moment that the page shows.
        axis: the axis of the whole life.
        knots: the transitions whose places the page has.
        near: the axis of the bars; the axis of the whole life unless `cut`.
        rows: the steps in the order of their beginning, after the process itself if it was in trouble.
        more_rows: the number of steps without a row.
        cut: whether it draws only the visits around the moment.
    """

    moment: ProcessMoment
    axis: Axis
    knots: Sequence[Transition]
    near: Axis
    rows: Sequence[TimelineLane]
    more_rows: int
    cut: bool

    @property
    def live(self) -> bool:
        """Whether the process has not ended."""
        return self.moment.present.finished_at is None

    @property
    def place(self) -> float:
        """The place of the moment on the axis; now is at its end."""
        return WIDTH if self.moment.at is None else self.axis.x(self.moment.at)

    @property
    def near_place(self) -> float:
        """The place of the moment on the axis of the bars."""
        return WIDTH if self.moment.at is None else self.near.x(self.moment.at)

    def to_json(self) -> list[list[float]]:
        """Return the knots for the page: number, seconds since the epoch, place."""
        return [
            [
                knot.revision,
                round(knot.at.timestamp(), 3),
                round(self.axis.x(knot.at), 2),
            ]
            for knot in self.knots
        ]


def timeline_of(moment: ProcessMoment) -> Timeline:
    """Read the timeline of a process, up to now, around a moment."""
    now, instance = timezone.now(), moment.present
    knots = _knots(moment)
    times = [instance.started_at, *(knot.at for knot in knots)]
    axis = axis_of(times if instance.finished_at else [*times, now])
    runs, cut = _runs(moment)
    near = _axis_of_bars(runs, moment, now) if cut else axis
    rows = _step_lanes(runs, moment, near, now)
    return Timeline(
        moment,
        axis,
        knots,
        near,
        [*_status_lane(moment, near, now), *rows[:ROWS]],
        max(len(rows) - ROWS, 0),
        cut,
    )


def _knots(moment: ProcessMoment) -> Sequence[Transition]:
    """Return evenly spaced transitions of the whole history, with the first and the last."""
    last = moment.present.revision
    step = max(-(-last // KNOTS), 1)
    wanted = {*range(1, last + 1, step), last}
    return moment.transitions.numbered(wanted)


def _runs(moment: ProcessMoment) -> tuple[list[StepRun], bool]:
    """Return the visits around a moment, and whether there are others."""
    if not (moment.is_past or moment.is_workflow):
        return moment.visits[-BARS:], len(moment.visits) > BARS
    rows = moment.present.step_runs.filter(item=None)
    rows = rows.exclude(status=StepStatus.NOT_TAKEN).exclude(kind=StepKind.JOIN)
    rows = rows.defer("result", "saved", "element", "error", "progress")
    until = rows if moment.at is None else rows.filter(started_at__lte=moment.at)
    before = list(until.order_by(*NEWEST)[: BARS + 1])[::-1]
    after: list[StepRun] = []
    if moment.at is not None:
        later = rows.filter(started_at__gt=moment.at).order_by(*FIRST)
        after = list(later[: BARS + 1])
    number = max(BARS - len(after), BARS // 2)  # half of those drawn, if there are
    drawn = before[-number:]
    drawn += after[: BARS - len(drawn)]
    return drawn, len(drawn) < len(before) + len(after)


def _axis_of_bars(
    runs: Sequence[StepRun], moment: ProcessMoment, now: datetime
) -> Axis:
    """Return the axis of the drawn visits: from the beginning of the first visit to that of the last, or to now."""
    begin, end = runs[0].started_at, runs[-1].started_at
    end = max(end, moment.at) if moment.at is not None else end
    if moment.at is None and any(run.finished_at is None for run in runs):
        end = max(end, now)
    ends = (run.finished_at for run in runs if run.finished_at is not None)
    inside = [at for at in ends if begin < at < end]
    return axis_of([begin, end, *(run.started_at for run in runs), *inside])


def _status_lane(
    moment: ProcessMoment, axis: Axis, now: datetime
) -> list[TimelineLane]:
    """Return the process itself, if it was in trouble or paused around the moment."""
    instance, last = moment.present, moment.revision
    told = moment.transitions.between(last - BARS + 1, last + BARS // 2)
    if not told:
        return []
    ongoing = told[-1].revision == instance.revision
    until = (instance.finished_at or now) if ongoing else max(row.at for row in told)
    spans = troubled_spans(((row.at, row.status) for row in told), until)
    live = ongoing and not instance.finished_at
    bars = [
        _status_bar(span, axis, is_open=live and span.end == until)
        for span in spans
        if axis.times[0] < span.end and span.begin <= axis.times[-1]
    ]
    label = _("Process")
    said = f"{label}: {'; '.join(bar.said for bar in bars[-SAID:])}"
    return [TimelineLane(label, said, bars)] if bars else []


def _status_bar(span: StatusSpan, axis: Axis, *, is_open: bool) -> TimelineBar:
    lasted = max(span.end - span.begin, timedelta(0))
    words = [str(look(span.status).word), clock(span.begin), exact(lasted)]
    if is_open:
        words.append(_("still going on"))
    return TimelineBar(", ".join(words), is_open, [stretch_of_span(span, axis)])


def _step_lanes(
    runs: Sequence[StepRun], moment: ProcessMoment, axis: Axis, now: datetime
) -> list[TimelineLane]:
    turns = turns_of(moment.present, runs)
    bars: dict[str, list[TimelineBar]] = defaultdict(list)
    for run in runs:
        of_step = bars[run.node]
        number = run.visit if run.kind else len(of_step) + 1
        status = shown_status(run, moment.present)
        until = run.finished_at or max(now, run.started_at)
        parts = stretches_of(run, status, until, turns.get(run.pk, ()), axis)
        said = ", ".join(_words(run, number, status, until - run.started_at))
        number_of = (run.expected or 0) if run.kind == StepKind.MAP else 0
        of_step.append(TimelineBar(said, run.finished_at is None, parts, number_of))
    return [_step_lane(moment.labels.get(node, node), bars[node]) for node in bars]


def _step_lane(label: str, bars: list[TimelineBar]) -> TimelineLane:
    number = len(bars)
    visits = ngettext("%(number)s visit", "%(number)s visits", number)
    said = f"{label}: {visits % {'number': number}}; {bars[-1].said}"
    return TimelineLane(label, said, bars)


def _words(run: StepRun, number: int, status: str, lasted: timedelta) -> Iterator[str]:
    """Yield a visit in words: number, status, beginning, duration and exceptional facts.

    Args:
        run: the visit.
        number: its number among the visits of its step.
        status: its shown status.
        lasted: its duration; negative if two clocks disagree.
    """
    yield f"#{number} {look(status).word}"
    yield clock(run.started_at)
    yield exact(abs(lasted))
    if run.finished_at is None:
        yield _("still going on")
    if run.attempt > 1:
        yield _("%(number)s attempts") % {"number": run.attempt}
    if run.status == StepStatus.RETRYING and run.wake_at and not run.owner:
        yield _("the next one at %(time)s") % {"time": clock(run.wake_at)}
    if run.kind == StepKind.MAP and run.expected is not None:
        yield _("%(number)s elements") % {"number": run.expected}
    if lasted < timedelta(0):
        yield _("it ended before it began: two clocks disagree")
