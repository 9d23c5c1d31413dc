"""The problems that need a person, by kind and definition: their number in the list, and the time of the oldest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from monitoring.attention.health import Health
from monitoring.attention.problems import LISTED, Problem
from monitoring.lists.events.events import events_with_verdict, overdue_events
from monitoring.lists.failures.failure_marks import handled_causes, unhandled_failures
from monitoring.lists.failures.failures import definition_names, open_failures_of
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.stalled_processes import stalled_by_definition
from monitoring.lists.waits.decisions import open_questions
from monitoring.queries.activity import overdue_visits
from monitoring.queries.counts import (
    CAP,
    EACH_FOUND,
    FEW,
    MARK,
    Capped,
    ForEach,
    RowQuery,
    count_by,
    fixed_query,
)
from monitoring.queries.processes import definition_name
from orchestrator.models import InboxEvent, ProcessInstance, Status, StepRun
from orchestrator.models.inbox_event import PROBLEMS

ProblemsByKind = dict[str, Problem]
"""Problems by kind, including kinds with a count of zero."""

ProblemsByDefinition = dict[str, ProblemsByKind]
"""Problems by definition name; "" has the totals."""


def problems_by_definition(
    health: Health, names: Collection[str]
) -> ProblemsByDefinition:
    """Return the problems of each definition, from bounded queries for each kind.

    An event counts for the definition of its process.

    Args:
        health: the counts of the menu.
        names: of the definitions.
    """
    counts = dict(_count_problems(health, names))
    in_all: ProblemsByKind = {}
    for kind in LISTED:
        every = sum(number.number for _, number, _ in counts[kind])
        first = min((at for _, _, at in counts[kind] if at), default=None)
        # The menu has counted the rows of its lists.
        number = getattr(health, kind, Capped(min(every, FEW), FEW))
        in_all[kind] = Problem(kind, number, first)
    return {"": in_all, **_by_definition(counts, LISTED, names)}


def problems_of_definitions(names: Collection[str]) -> ProblemsByDefinition:
    """Return the problems for a reader of these definitions alone, without events.

    Each number is the number of a definition's list, which looks at the first rows of all definitions.
    """
    kinds = [kind for kind in LISTED if kind != "events"]
    by_definition = _by_definition(dict(_count_problems_of(names)), kinds, names)
    in_all = {
        kind: _sum(kind, [needs[kind] for needs in by_definition.values()])
        for kind in kinds
    }
    return {"": in_all, **by_definition}


def _sum(kind: str, needs: list[Problem]) -> Problem:
    """Sum problems of one kind; the sum of a single definition has a list."""
    number = sum(need.number.number for need in needs)
    more = any(need.number.at_least for need in needs)
    since = min((need.since for need in needs if need.since), default=None)
    one = needs[0].definition if len(needs) == 1 else ""
    every = Capped.of(number, more=more)
    return Problem(kind, every, since, one, listed=len(needs) == 1)


Counted = list[tuple[str | None, Capped, datetime | None]]
"""Definition names with counts and oldest times; None for rows without a definition."""

CountRows = list[tuple[Any, ...]]
"""The same with plain numbers."""


def _by_definition(
    counts: Mapping[str, Counted], kinds: Iterable[str], names: Iterable[str]
) -> ProblemsByDefinition:
    """Arrange counts by definition and kind."""
    found: ProblemsByDefinition = {
        name: {kind: Problem(kind, Capped(0, CAP), None, name) for kind in kinds}
        for name in names
    }
    for kind, rows in counts.items():
        for name, number, oldest in rows:
            if name in found:
                found[name][kind] = Problem(kind, number, oldest, name)
    return found


def _count_problems(
    health: Health, names: Collection[str]
) -> Iterator[tuple[str, Counted]]:
    """Yield the counts by definition for each kind."""
    # Many failures of one definition must not hide the few of another, which appear nowhere else.
    yield "failures", _mark_capped(_count_failures() if health.failures else [], CAP)
    overdue = fixed_query(_overdue_events)
    verdicts: list[RowQuery] = [ForEach(_problem_events, PROBLEMS), overdue]
    for kind, number, rows, at in (
        ("decisions", health.decisions, [fixed_query(_questions)], "started_at"),
        ("events", health.events, verdicts, "received_at"),
    ):
        found = count_by(rows, "of", oldest=at, cap=EACH_FOUND) if number else []
        yield kind, _mark_capped(found, EACH_FOUND)
    yield from _count_processes(names, fixed_query(_escalated_processes))


def _count_problems_of(names: Collection[str]) -> Iterator[tuple[str, Counted]]:
    """Yield the counts by definition for each kind except events, of some definitions."""
    for kind, rows_of, at in (
        ("failures", open_failures_of, "opened_at"),
        ("decisions", open_questions, "started_at"),
    ):
        every = Counted()
        for name in names:
            found = count_by(rows_of(name), "kind", oldest=at, cap=CAP)
            together = _add_up((name, number, since) for _, number, since in found)
            every += _mark_capped(together, CAP)
        yield kind, every
    yield from _count_processes(names, _escalated_processes().filter(name__in=names))


def _count_processes(
    names: Collection[str], escalated: RowQuery
) -> Iterator[tuple[str, Counted]]:
    """Yield the counts of stalled, overdue, escalated, retrying and paused processes."""
    yield "stalled", _mark_capped(stalled_by_definition(), CAP)
    yield "overdue", _mark_capped(_count_overdue(), CAP)
    found = count_by(escalated, "of", oldest="escalated_at", cap=EACH_FOUND)
    yield "escalated", _mark_capped(found, EACH_FOUND)
    for status, rows in HELD_UP.items():
        each = ForEach(rows, sorted(names), alike=True)
        found = count_by(each, "name", oldest="since", cap=FEW)
        yield str(status), [(name, Capped(n, FEW), at) for name, n, at in found]


def _live_and(status: Status) -> QuerySet[ProcessInstance]:
    """Return the live processes of a definition with a status, and the time of its beginning."""
    rows = ProcessInstance.objects.live().filter(name=MARK, status=status)
    found: QuerySet[ProcessInstance] = rows.annotate(
        since=Coalesce("paused_at", "changed_at")
    )
    return found


HELD_UP = {one: partial(_live_and, one) for one in (Status.RETRYING, Status.PAUSED)}


def _mark_capped(rows: CountRows, most: int) -> Counted:
    """Mark counts that reached the limit: each definition may then have more."""
    full = sum(number for _, number, _ in rows) >= most
    return [(name, Capped.of(n, more=full), oldest) for name, n, oldest in rows]


def _questions() -> QuerySet[StepRun]:
    return open_questions().order_by("pk").annotate(of=definition_name())


def _problem_events() -> QuerySet[InboxEvent]:
    return events_with_verdict(MARK).annotate(of=definition_name("process_id"))


def _overdue_events() -> QuerySet[InboxEvent]:
    return overdue_events().annotate(of=definition_name("process_id"))


def _escalated_processes() -> QuerySet[ProcessInstance]:
    rows = ProcessInstance.objects.escalated()
    found: QuerySet[ProcessInstance] = rows.annotate(of=F("name"))
    return found


def _count_failures() -> CountRows:
    """Count the newest open failures by definition."""
    parts = [part.order_by("-pk") for part in unhandled_failures(handled_causes())]
    found = count_by(parts, "fingerprint", oldest="opened_at", newest="id", cap=CAP)
    names = definition_names(key for *_, key in found)
    return _add_up((names.get(key), number, at) for _, number, at, key in found)


def _count_overdue() -> CountRows:
    if not overdue_visits().exists():  # which an index knows at once
        return []
    late = Filters(overdue="1").applied().annotate(of=F("name"), at=_late_since())
    return count_by(late, "of", oldest="at")


def _late_since() -> Subquery:
    """Return a subquery for a process's earliest overdue deadline."""
    visits = overdue_visits().filter(instance=OuterRef("pk")).order_by("wake_at")
    return Subquery(visits.values("wake_at")[:1])


def _add_up(rows: Iterable[tuple[str | None, int, datetime | None]]) -> CountRows:
    """Add up the rows of each definition, with the oldest time."""
    found: dict[str | None, tuple[int, datetime | None]] = {}
    for name, number, at in rows:
        before, oldest = found.get(name, (0, at))
        earliest = min((one for one in (oldest, at) if one), default=None)
        found[name] = before + number, earliest
    return [(name, *counted) for name, counted in found.items()]
