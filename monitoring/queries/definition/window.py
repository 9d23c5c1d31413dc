"""What the steps of one stored definition were like lately: what finished them, how long it was in them, what failed.

The transitions of the last hour, day or week are looked at along their keys: each of them while there are few, and one
in so many of more. A visit came to its end, and a failure was told, in the same commit as a transition.
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

from monitoring.queries.among import among
from monitoring.queries.counts import as_text, short
from monitoring.queries.doing import WINDOWS, came_to_its_end
from monitoring.queries.lately import transitions_since
from orchestrator.models import Definition, Incident, StepRun

LOOKED_AT = 1_000
"""Transitions that are looked at."""

VISITS = 6_000
"""Visits of their processes that are looked at."""

FAILURES = 2_000
"""Failures of theirs that are looked at."""

OF_EVENTS = (Incident.Kind.UNEXPECTED_EVENT, Incident.Kind.REJECTED_EVENT)
"""What people are told of that is no failure of the step in which it happened."""

Moment = tuple[str, str]
"""A process, and when it was changed, as the database writes them: to read thousands costs more than all else."""


@dataclass
class Passed:
    """What one step was like: seconds that visits of it took, which processes finished it, and which failed in it."""

    seconds: list[float] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def join(self, other: Passed) -> None:
        """Takes over what another step was like, where both are drawn as one."""
        self.seconds += other.seconds
        self.finished |= other.finished
        self.failed |= other.failed

    def quantile(self, share: float) -> float | None:
        """The time in the step that this share of the visits took at most; None without visits."""
        if not self.seconds:
            return None
        return sorted(self.seconds)[ceil(share * len(self.seconds)) - 1]

    @property
    def failure_rate(self) -> float | None:
        """Which share of the processes that finished the step, or failed in it, failed in it; None without any."""
        every = self.finished | self.failed
        return len(self.failed) / len(every) if every else None


@dataclass(frozen=True)
class Window:
    """The steps that anything happened in.

    Args:
        name: hour, day or week.
        every: for how many transitions each that was looked at stands.
        looked_at: how many were, of this definition.
        at_least: whether there were more visits or failures than were looked at.
        steps: what each step was like.
    """

    name: str
    every: int
    looked_at: int
    at_least: bool
    steps: dict[str, Passed]

    def of(self, steps: tuple[str, ...]) -> Passed:
        """What some steps were like together."""
        found = Passed()
        for step in steps:
            if step in self.steps:
                found.join(self.steps[step])
        return found

    def said(self, number: int) -> str:
        """A number of what was looked at, for all that it stands for: ≈ about, + or more."""
        about = "≈" if self.every > 1 and number else ""
        return f"{about}{short(number * self.every)}{'+' if self.at_least else ''}"


def window(definition: Definition, name: str, step: str = "") -> Window:
    """What was in the last hour, day or week.

    Args:
        definition: of the processes.
        name: hour, day or week.
        step: the only one that is told of; "" for all.
    """
    since = timezone.now() - WINDOWS[name]
    rows, every = transitions_since(since, LOOKED_AT)
    mine = rows.filter(instance__definition=definition.pk)
    moments: set[Moment] = set(
        mine.values_list(as_text("instance_id"), as_text("at"))[:LOOKED_AT]
    )
    steps: dict[str, Passed] = defaultdict(Passed)
    processes = {UUID(process) for process, _ in moments}
    counted = None if every == 1 else moments
    visits = _visits(definition, processes)
    told = Incident.objects.filter(
        among("instance_id", processes), opened_at__gte=since
    )
    if step:
        visits, told = visits.filter(node=step), told.filter(step=step)
    at_least = _finished(steps, visits, name, counted)
    at_least |= _failed(steps, told, counted)
    return Window(name, every, len(moments), at_least, dict(steps))


def _visits(definition: Definition, processes: set[UUID]) -> QuerySet[StepRun]:
    """The visits of some processes, but for those of elements of maps."""
    theirs = StepRun.objects.filter(
        among("instance_id", processes), item=None
    ).order_by()
    # Along the index of visits that are no elements of maps, of which there may be very many.
    of_kind = {"kind": ""}
    manager = definition.kind == Definition.Kind.PROCESS_MANAGER
    return theirs.filter(**of_kind) if manager else theirs.exclude(**of_kind)


def _finished(
    steps: dict[str, Passed],
    visits: QuerySet[StepRun],
    name: str,
    counted: set[Moment] | None,
) -> bool:
    """Notes the visits that ended, at the counted moments or at all; whether there may be more."""
    looked_at = visits.annotate(
        process=as_text("instance_id"),
        began=as_text("started_at"),
        ended=as_text("finished_at"),
        over=ExpressionWrapper(came_to_its_end(WINDOWS[name]), BooleanField()),
    ).values("process", "node", "began", "ended", "over")[:VISITS]
    number, rows = _over(looked_at, counted)
    for process, node, began, ended in rows:
        if counted is None or (process, ended) in counted:
            took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
            steps[node].finished.add(process)
            steps[node].seconds.append(max(took.total_seconds(), 0.0))
    return number >= VISITS


def _over(
    looked_at: QuerySet[Any], counted: set[Moment] | None
) -> tuple[int, list[tuple[str, str, str, str]]]:
    """How many visits are looked at, and those of them that are over and ended at one of the counted moments.

    A statement around theirs asks it: by conditions of their own the database would look for others instead.
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


def _failed(
    steps: dict[str, Passed], told: QuerySet[Incident], counted: set[Moment] | None
) -> bool:
    """Notes the failures that people were told of, at the counted moments or at all; whether there may be more."""
    columns = as_text("instance_id"), "step", as_text("opened_at")
    rows = list(
        told.exclude(step="")
        .exclude(kind__in=OF_EVENTS)
        .values_list(*columns)[:FAILURES]
    )
    for process, step, at in rows:
        if counted is None or (process, at) in counted:
            steps[step].failed.add(process)
    return len(rows) >= FAILURES
