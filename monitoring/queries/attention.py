"""What needs a person, by kind: each number is that of the list it opens, with the time of the oldest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from monitoring.queries.counts import (
    CAP,
    EACH_FOUND,
    FEW,
    MARK,
    Capped,
    ForEach,
    Part,
    counted,
    grouped,
    once,
)
from monitoring.queries.decisions import open_questions
from monitoring.queries.doing import overdue_visits
from monitoring.queries.events import overdue_events, with_verdict
from monitoring.queries.failures import names_of, open_of
from monitoring.queries.handled import handled_causes, inbox
from monitoring.queries.health import Health
from monitoring.queries.instances.filters import Filters
from monitoring.queries.problems import LISTED, Problem
from monitoring.queries.processes import definition_name
from monitoring.queries.stalled import stalled_by_definition
from orchestrator.models import InboxEvent, ProcessInstance, Status, StepRun
from orchestrator.models.inbox_event import PROBLEMS

OfKind = dict[str, Problem]
"""Problems by kind, including kinds with a count of zero."""

Needs = dict[str, OfKind]
"""Problems by definition name; "" has the totals."""


def needs(health: Health, names: Collection[str]) -> Needs:
    """Return what needs a person, from bounded queries for each kind.

    A definition's events are those with a process.

    Args:
        health: the counts of the menu.
        names: of the definitions.
    """
    counts = dict(_counted(health, names))
    in_all: OfKind = {}
    for kind in LISTED:
        every = sum(number.number for _, number, _ in counts[kind])
        first = min((at for _, _, at in counts[kind] if at), default=None)
        # Those of the menu are those of its lists.
        number = getattr(health, kind, Capped(min(every, FEW), FEW))
        in_all[kind] = Problem(kind, number, first)
    return {"": in_all, **_by_definition(counts, LISTED, names)}


def needs_of(names: Collection[str]) -> Needs:
    """Return the same for a reader who sees only these definitions, without events.

    Each number is that of a definition's list, which looks at the first rows of all.
    """
    kinds = [kind for kind in LISTED if kind != "events"]
    by_definition = _by_definition(dict(_counted_of(names)), kinds, names)
    in_all = {
        kind: _summed(kind, [needs[kind] for needs in by_definition.values()])
        for kind in kinds
    }
    return {"": in_all, **by_definition}


def _summed(kind: str, needs: list[Problem]) -> Problem:
    """Sum problems of one kind; the sum of a single definition has a list."""
    number = sum(need.number.number for need in needs)
    more = any(need.number.at_least for need in needs)
    since = min((need.since for need in needs if need.since), default=None)
    one = needs[0].definition if len(needs) == 1 else ""
    every = counted(number, more=more)
    return Problem(kind, every, since, one, listed=len(needs) == 1)


Counted = list[tuple[str | None, Capped, datetime | None]]
"""Definition names with counts and oldest times; None for rows without a definition."""

Rows = list[tuple[Any, ...]]
"""The same with plain numbers."""


def _by_definition(
    counts: Mapping[str, Counted], kinds: Iterable[str], names: Iterable[str]
) -> Needs:
    """Arrange counts by definition and kind."""
    found: Needs = {
        name: {kind: Problem(kind, Capped(0, CAP), None, name) for kind in kinds}
        for name in names
    }
    for kind, rows in counts.items():
        for name, number, oldest in rows:
            if name in found:
                found[name][kind] = Problem(kind, number, oldest, name)
    return found


def _counted(health: Health, names: Collection[str]) -> Iterator[tuple[str, Counted]]:
    """Yield the counts by definition for each kind."""
    # Many failures of one definition must not hide the few of another, which appear nowhere else.
    yield "failures", _among(_failures() if health.failures else [], CAP)
    verdicts: list[Part] = [ForEach(_of_verdict, PROBLEMS), once(_overdue_events)]
    for kind, number, rows, at in (
        ("decisions", health.decisions, [once(_questions)], "started_at"),
        ("events", health.events, verdicts, "received_at"),
    ):
        found = grouped(rows, "of", oldest=at, cap=EACH_FOUND) if number else []
        yield kind, _among(found, EACH_FOUND)
    yield from _of_processes(names, once(_escalated))


def _counted_of(names: Collection[str]) -> Iterator[tuple[str, Counted]]:
    """Yield the counts by definition for each kind except events, of some definitions."""
    for kind, rows_of, at in (
        ("failures", open_of, "opened_at"),
        ("decisions", open_questions, "started_at"),
    ):
        every = Counted()
        for name in names:
            found = grouped(rows_of(name), "kind", oldest=at, cap=CAP)
            together = _together((name, number, since) for _, number, since in found)
            every += _among(together, CAP)
        yield kind, every
    yield from _of_processes(names, _escalated().filter(name__in=names))


def _of_processes(
    names: Collection[str], escalated: Part
) -> Iterator[tuple[str, Counted]]:
    """Yield the counts of stalled, overdue, escalated, retrying and paused processes."""
    yield "stalled", _among(stalled_by_definition(), CAP)
    yield "overdue", _among(_overdue(), CAP)
    found = grouped(escalated, "of", oldest="escalated_at", cap=EACH_FOUND)
    yield "escalated", _among(found, EACH_FOUND)
    for status, rows in HELD_UP.items():
        each = ForEach(rows, sorted(names), alike=True)
        found = grouped(each, "name", oldest="since", cap=FEW)
        yield str(status), [(name, Capped(n, FEW), at) for name, n, at in found]


def _live_and(status: Status) -> QuerySet[ProcessInstance]:
    """Return the live processes of a definition with a status, and the time of its beginning."""
    rows = ProcessInstance.objects.live().filter(name=MARK, status=status)
    found: QuerySet[ProcessInstance] = rows.annotate(
        since=Coalesce("paused_at", "changed_at")
    )
    return found


HELD_UP = {one: partial(_live_and, one) for one in (Status.RETRYING, Status.PAUSED)}


def _among(rows: Rows, most: int) -> Counted:
    """Mark counts that reached the limit: each definition may then have more."""
    full = sum(number for _, number, _ in rows) >= most
    return [(name, counted(number, more=full), oldest) for name, number, oldest in rows]


def _questions() -> QuerySet[StepRun]:
    return open_questions().order_by("pk").annotate(of=definition_name())


def _of_verdict() -> QuerySet[InboxEvent]:
    return with_verdict(MARK).annotate(of=definition_name("process_id"))


def _overdue_events() -> QuerySet[InboxEvent]:
    return overdue_events().annotate(of=definition_name("process_id"))


def _escalated() -> QuerySet[ProcessInstance]:
    rows = ProcessInstance.objects.escalated()
    found: QuerySet[ProcessInstance] = rows.annotate(of=F("name"))
    return found


def _failures() -> Rows:
    """Count the newest open failures by definition."""
    parts = [part.order_by("-pk") for part in inbox(handled_causes())]
    found = grouped(parts, "fingerprint", oldest="opened_at", newest="id", cap=CAP)
    names = names_of(key for *_, key in found)
    return _together((names.get(key), number, at) for _, number, at, key in found)


def _overdue() -> Rows:
    if not overdue_visits().exists():  # which an index knows at once
        return []
    late = Filters(overdue="1").applied().annotate(of=F("name"), at=_late_since())
    return grouped(late, "of", oldest="at")


def _late_since() -> Subquery:
    """Return a subquery for a process's earliest overdue deadline."""
    visits = overdue_visits().filter(instance=OuterRef("pk")).order_by("wake_at")
    return Subquery(visits.values("wake_at")[:1])


def _together(rows: Iterable[tuple[str | None, int, datetime | None]]) -> Rows:
    """Add up the rows of each definition, with the oldest time."""
    found: dict[str | None, tuple[int, datetime | None]] = {}
    for name, number, at in rows:
        before, oldest = found.get(name, (0, at))
        earliest = min((one for one in (oldest, at) if one), default=None)
        found[name] = before + number, earliest
    return [(name, *counted) for name, counted in found.items()]
