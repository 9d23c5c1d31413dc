"""The steps of one stored definition in a recent window: finished visits, their durations, and failures.

The transitions of the last hour, day or week are read along their keys; of many, a sample. A visit ends, and a failure
is stored, in the same commit as a transition.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import BooleanField, ExpressionWrapper, QuerySet
from django.utils import timezone

from monitoring.queries.activity import WINDOWS, ended_within
from monitoring.queries.any_of import any_of
from monitoring.queries.counts import short_number, text_column
from monitoring.queries.samples import sample_since
from orchestrator.models import Checkpoint, Definition, Incident, StepRun

LOOKED_AT = 1_000
"""The maximum number of transitions to read."""

VISITS = 6_000
"""The maximum number of visits of their processes to read."""

FAILURES = 2_000
"""The maximum number of failures of their processes to read."""

OF_EVENTS = (Incident.Kind.UNEXPECTED_EVENT, Incident.Kind.REJECTED_EVENT)
"""Incidents that are no failures of a step."""

Moment = tuple[str, str]
"""A process and the time of a change, as texts of the database: parsing thousands of them is slow."""


@dataclass
class StepFigures:
    """One step in the window: durations of visits in seconds, processes that finished it, and processes that failed."""

    seconds: list[float] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def join(self, other: StepFigures) -> None:
        """Add another step, when both are drawn as one."""
        self.seconds += other.seconds
        self.finished |= other.finished
        self.failed |= other.failed

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
        every: the number of transitions that each transition of the sample stands for.
        looked_at: the size of the sample, of this definition.
        at_least: whether there were more visits or failures than were read.
        steps: the figures by step.
    """

    name: str
    every: int
    looked_at: int
    at_least: bool
    steps: dict[str, StepFigures]

    def of(self, steps: tuple[str, ...]) -> StepFigures:
        """Return the figures of some steps together."""
        found = StepFigures()
        for step in steps:
            if step in self.steps:
                found.join(self.steps[step])
        return found

    def said(self, number: int) -> str:
        """Write the estimate for a number in the sample; "≈" means about, "+" means or more."""
        about = "≈" if self.every > 1 and number else ""
        estimate = short_number(number * self.every)
        return f"{about}{estimate}{'+' if self.at_least else ''}"


def read_window(definition: Definition, name: str, step: str = "") -> Window:
    """Read the last hour, day or week.

    Args:
        definition: of the processes.
        name: hour, day or week.
        step: the only step to read; "" for all.
    """
    since = timezone.now() - WINDOWS[name]
    rows, every = sample_since(Checkpoint, "at", since, LOOKED_AT)
    mine = rows.filter(instance__definition=definition.pk)
    columns = text_column("instance_id"), text_column("at")
    moments: set[Moment] = set(mine.values_list(*columns)[:LOOKED_AT])
    steps: dict[str, StepFigures] = defaultdict(StepFigures)
    processes = {UUID(process) for process, _ in moments}
    counted = None if every == 1 else moments
    visits = _visits(definition, processes)
    told = Incident.objects.filter(
        any_of("instance_id", processes), opened_at__gte=since
    )
    if step:
        visits, told = visits.filter(node=step), told.filter(step=step)
    at_least = _add_finished(steps, visits, name, counted)
    at_least |= _add_failures(steps, told, counted)
    return Window(name, every, len(moments), at_least, dict(steps))


def _visits(definition: Definition, processes: set[UUID]) -> QuerySet[StepRun]:
    """Return the visits of some processes, without those of elements of maps."""
    theirs = StepRun.objects.filter(
        any_of("instance_id", processes), item=None
    ).order_by()
    # Along the index without elements of maps, which may be very many.
    of_kind = {"kind": ""}
    manager = definition.kind == Definition.Kind.PROCESS_MANAGER
    return theirs.filter(**of_kind) if manager else theirs.exclude(**of_kind)


def _add_finished(
    steps: dict[str, StepFigures],
    visits: QuerySet[StepRun],
    name: str,
    counted: set[Moment] | None,
) -> bool:
    """Add the visits that ended, at the counted moments or at any; return whether there may be more."""
    looked_at = visits.annotate(
        process=text_column("instance_id"),
        began=text_column("started_at"),
        ended=text_column("finished_at"),
        over=ExpressionWrapper(ended_within(WINDOWS[name]), BooleanField()),
    ).values("process", "node", "began", "ended", "over")[:VISITS]
    number, rows = _ended_visits(looked_at, counted)
    for process, node, began, ended in rows:
        if counted is None or (process, ended) in counted:
            took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
            steps[node].finished.add(process)
            steps[node].seconds.append(max(took.total_seconds(), 0.0))
    return number >= VISITS


def _ended_visits(
    looked_at: QuerySet[Any], counted: set[Moment] | None
) -> tuple[int, list[tuple[str, str, str, str]]]:
    """Return the number of visits read, and those that ended at one of the counted moments.

    An outer statement filters them: conditions in the inner one would let the database read other visits.
    """
    try:
        statement, given = looked_at.query.sql_with_params()
    except EmptyResultSet:
        return 0, []
    connection, wanted = connections[looked_at.db], "one.over"
    if counted is not None and connection.vendor == "postgresql":
        wanted += " AND one.ended = ANY(%s)"
        given = (*given, [at for _, at in counted])
    with connection.cursor() as cursor:
        # The inner statement comes from the query compiler.
        cursor.execute(
            f"""
            WITH looked_at AS ({statement})
            SELECT counted.number, one.process, one.node, one.began, one.ended
            FROM (SELECT COUNT(*) AS number FROM looked_at) AS counted
            LEFT JOIN looked_at AS one ON {wanted}
            """,  # noqa: S608
            given,
        )
        found = cursor.fetchall()
    return found[0][0], [row for _, *row in found if row[0] is not None]


def _add_failures(
    steps: dict[str, StepFigures], told: QuerySet[Incident], counted: set[Moment] | None
) -> bool:
    """Add the failures, at the counted moments or at any; return whether there may be more."""
    columns = text_column("instance_id"), "step", text_column("opened_at")
    rows = list(
        told.exclude(step="")
        .exclude(kind__in=OF_EVENTS)
        .values_list(*columns)[:FAILURES]
    )
    for process, step, at in rows:
        if counted is None or (process, at) in counted:
            steps[step].failed.add(process)
    return len(rows) >= FAILURES
