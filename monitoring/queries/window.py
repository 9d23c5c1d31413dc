"""The steps of one stored definition in a recent window: finished visits, their durations, and failures.

Up to `LOOKED_AT` visits are all counted; of more, a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from monitoring.queries.activity import COUNTED, WINDOWS
from monitoring.queries.counts import text_column
from monitoring.queries.recent_rows import LEAST, Estimate, RecentRows, recent_rows
from orchestrator.models import Definition, Incident, StepRun

LOOKED_AT = 20_000
"""The maximum number of visits to count one by one."""

FAILURES = 5_000
"""The maximum number of failures to read, and of visits and failures that an earlier release has written."""

OF_EVENTS = (Incident.Kind.UNEXPECTED_EVENT, Incident.Kind.REJECTED_EVENT)
"""Incidents that are no failures of a step."""


@dataclass
class StepFigures:
    """One step in the window.

    Args:
        seconds: the durations of its visits.
        finished: the processes that finished it.
        failed: the processes that failed in it.
        firsts: the ends of the visits that are the first of their process in the window, in a sample.
        several: whether it is several steps.
    """

    seconds: list[float] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    firsts: list[str] = field(default_factory=list)
    several: bool = False

    def join(self, other: StepFigures) -> None:
        """Add another step, when both are drawn as one."""
        self.several = self.several or bool(self.seconds or self.failed)
        self.seconds += other.seconds
        self.finished |= other.finished
        self.failed |= other.failed
        # A process may have finished both.
        self.firsts = max(self.firsts, other.firsts, key=len)

    def quantile(self, share: float) -> float | None:
        """Return a quantile of the durations; None without visits."""
        if not self.seconds:
            return None
        return sorted(self.seconds)[ceil(share * len(self.seconds)) - 1]

    @property
    def failure_rate(self) -> float | None:
        """The share of failed processes among those that finished the step or failed; None without any."""
        every = self.finished | self.failed
        return len(self.failed) / len(every) if every else None


@dataclass(frozen=True)
class Window:
    """The steps with visits or failures in the window.

    Args:
        name: hour, day or week.
        read: the visits that were read.
        at_least: whether there were more visits than were read.
        more_failed: whether there were more failures than were read.
        steps: the figures by step.
    """

    name: str
    read: RecentRows
    at_least: bool
    more_failed: bool
    steps: dict[str, StepFigures]

    def of(self, steps: tuple[str, ...]) -> StepFigures:
        """Return the figures of some steps together."""
        found = StepFigures()
        for step in steps:
            if step in self.steps:
                found.join(self.steps[step])
        return found

    @property
    def looked_at(self) -> int:
        """The number of visits that were read."""
        return len(self.read.rows)

    def shows(self, passed: StepFigures, *, failures: bool = False) -> bool:
        """Return whether enough was read of a step for a figure of its times, or of its failures."""
        enough = self.read.whole or len(passed.seconds) >= LEAST
        return enough and not (failures and self.more_failed)

    def visits(self, passed: StepFigures) -> Estimate:
        """Return the number of visits of a step."""
        number = len(passed.seconds)
        return Estimate(number, self.read.every, at_least=self.at_least)

    def finished(self, passed: StepFigures) -> Estimate:
        """Return the number of processes that finished a step, or one of several."""
        if self.read.whole:
            return Estimate(len(passed.finished), at_least=self.at_least)
        estimate = self.read.estimate(passed.firsts)
        return replace(estimate, at_least=self.at_least or passed.several)


def read_window(definition: Definition, name: str) -> Window:
    """Read the last hour, day or week.

    Args:
        definition: of the processes.
        name: hour, day or week.
    """
    until = timezone.now()
    since = until - WINDOWS[name]
    visits, told = _visits(), _failures()
    mine = visits.filter(stored_definition=definition.pk)
    read = recent_rows(
        mine.order_by("stored_definition", "-finished_at"),
        "finished_at",
        (since, until),
        LOOKED_AT,
        mine.annotate(again=_again(since)),
    )
    ended, opened = Q(finished_at__gte=since), Q(opened_at__gte=since)
    told = told.filter(opened)
    failed = told.filter(read.within("opened_at"), stored_definition=definition.pk)
    failures = list(failed[:FAILURES])
    more, more_failed = read.more, len(failures) == FAILURES
    if read.whole:
        earlier = _of_earlier_release(visits.filter(ended).order_by("-finished_at"))
        read.rows.extend(row[:-1] for row in earlier if row[-1] == definition.pk)
        before = _of_earlier_release(told.order_by("-opened_at"))
        failures += [row[:-1] for row in before if row[-1] == definition.pk]
        more |= len(earlier) == FAILURES
        more_failed |= len(before) == FAILURES
    else:
        more |= visits.filter(ended, stored_definition=None).exists()
    return Window(name, read, more, more_failed, _figures(read, failures))


def _visits() -> QuerySet[StepRun, tuple[Any, ...]]:
    """Return the visits that the numbers count: when each ended and began, its process, and its step."""
    rows = StepRun.objects.filter(COUNTED).order_by()
    times = {"ended": text_column("finished_at"), "began": text_column("started_at")}
    rows = rows.annotate(**times, process=text_column("instance_id"))
    return rows.values_list("ended", "began", "process", "node")


def _failures() -> QuerySet[Incident, tuple[Any, ...]]:
    """Return the failures of steps: the process and the step of each."""
    rows = Incident.objects.exclude(step="").exclude(kind__in=OF_EVENTS).order_by()
    return rows.values_list(text_column("instance_id"), "step")


def _of_earlier_release(rows: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """Return the rows that an earlier release has written, each with the key of its process's definition."""
    found = rows.filter(stored_definition=None)
    return list(found.annotate(of=F("instance__definition"))[:FAILURES])


def _again(since: datetime) -> Exists:
    """Return the condition that the process of a visit has finished the step in the window before."""
    there = {"instance": OuterRef("instance"), "node": OuterRef("node")}
    before = Q(finished_at__lt=OuterRef("finished_at")) | Q(
        finished_at=OuterRef("finished_at"), pk__lt=OuterRef("pk")
    )
    rows = StepRun.objects.filter(COUNTED, before, finished_at__gte=since, **there)
    return Exists(rows)


def _figures(
    read: RecentRows, failed: Iterable[tuple[Any, ...]]
) -> dict[str, StepFigures]:
    steps = defaultdict[str, StepFigures](StepFigures)
    for ended, began, process, node, *again in read.rows:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
        figures = steps[node]
        figures.finished.add(process)
        figures.seconds.append(max(took.total_seconds(), 0.0))
        if again == [False]:
            figures.firsts.append(ended)
    for process, step in failed:
        steps[step].failed.add(process)
    return dict(steps)
