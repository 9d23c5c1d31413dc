"""What needs a person, by its kind: each number is that of the list to which it leads, with the age of the oldest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    grouped,
    once,
)
from monitoring.queries.decisions import asked
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
"""By the name of the kind."""


@dataclass(frozen=True)
class AttentionCounts:
    """What needs a person in all, and of each definition; every kind is in both, also that of which there is none.

    Args:
        in_all: by the name of the kind.
        by_definition: the same by the definition's name.
    """

    in_all: OfKind
    by_definition: dict[str, OfKind] = field(default_factory=dict)


def needs(health: Health, names: Collection[str]) -> AttentionCounts:
    """What needs a person: no more than so many of each kind are looked at.

    Of a definition's events it is those that a process has been found for.

    Args:
        health: what has been counted for the menu.
        names: of the definitions.
    """
    counts = dict(_counted(health, names))
    in_all = {}
    for kind in LISTED:
        every = sum(number.number for _, number, _ in counts[kind])
        first = min((at for _, _, at in counts[kind] if at), default=None)
        # Those of the menu are those of its lists.
        number = getattr(health, kind, Capped(min(every, FEW), FEW))
        in_all[kind] = Problem(kind, number, first)
    return AttentionCounts(in_all, _by_definition(counts, LISTED, names))


def needs_of(names: Collection[str]) -> AttentionCounts:
    """The same for who sees these definitions alone: each number is that of the list of one, and none is of events.

    What is of one definition is looked for among the first of all, as in its list.
    """
    kinds = [kind for kind in LISTED if kind != "events"]
    by_definition = _by_definition(dict(_counted_of(names)), kinds, names)
    in_all = {
        kind: _summed(kind, [needs[kind] for needs in by_definition.values()])
        for kind in kinds
    }
    return AttentionCounts(in_all, by_definition)


def _summed(kind: str, needs: list[Problem]) -> Problem:
    """Several of one kind as one, which has a list if they are of one definition."""
    number = sum(need.number.number for need in needs)
    more = any(need.number.at_least for need in needs)
    since = min((need.since for need in needs if need.since), default=None)
    one = needs[0].definition if len(needs) == 1 else ""
    counted = Capped(number, number if more else number + 1)
    return Problem(kind, counted, since, one, listed=len(needs) == 1)


Counted = list[tuple[str | None, Capped, datetime | None]]
"""Names of definitions, each with how many and the oldest; None for what belongs to none."""

Rows = list[tuple[Any, ...]]
"""The same with plain numbers."""


def _by_definition(
    counts: Mapping[str, Counted], kinds: Iterable[str], names: Iterable[str]
) -> dict[str, OfKind]:
    """What was counted by kind, of each definition; also the kinds of which it has none."""
    found: dict[str, OfKind] = {
        name: {kind: Problem(kind, Capped(0, CAP), None, name) for kind in kinds}
        for name in names
    }
    for kind, counted in counts.items():
        for name, number, oldest in counted:
            if name in found:
                found[name][kind] = Problem(kind, number, oldest, name)
    return found


def _counted(health: Health, names: Collection[str]) -> Iterator[tuple[str, Counted]]:
    """Each kind by definition."""
    # Many failures of one definition must not hide the few of another, which nothing else tells of.
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
    """Each kind but events, of some definitions alone."""
    for kind, rows_of, at in (
        ("failures", open_of, "opened_at"),
        ("decisions", asked, "started_at"),
    ):
        counted = Counted()
        for name in names:
            found = grouped(rows_of(name), "kind", oldest=at, cap=CAP)
            together = _together((name, number, since) for _, number, since in found)
            counted += _among(together, CAP)
        yield kind, counted
    yield from _of_processes(names, _escalated().filter(name__in=names))


def _of_processes(
    names: Collection[str], escalated: Part
) -> Iterator[tuple[str, Counted]]:
    """What stands still, is late or escalated, tried again or paused."""
    yield "stalled", _among(stalled_by_definition(), CAP)
    yield "overdue", _among(_overdue(), CAP)
    found = grouped(escalated, "of", oldest="escalated_at", cap=EACH_FOUND)
    yield "escalated", _among(found, EACH_FOUND)
    for status, rows in HELD_UP.items():
        each = ForEach(rows, sorted(names), alike=True)
        found = grouped(each, "name", oldest="since", cap=FEW)
        yield str(status), [(name, Capped(n, FEW), at) for name, n, at in found]


def _live_and(status: Status) -> QuerySet[ProcessInstance]:
    """Those of a definition that go on and have that status, with since when."""
    rows = ProcessInstance.objects.live().filter(name=MARK, status=status)
    found: QuerySet[ProcessInstance] = rows.annotate(
        since=Coalesce("paused_at", "changed_at")
    )
    return found


HELD_UP = {one: partial(_live_and, one) for one in (Status.RETRYING, Status.PAUSED)}


def _among(rows: Rows, most: int) -> Counted:
    """Counts among so many that were looked at: where there are more, each definition may have more."""
    full = sum(number for _, number, _ in rows) >= most
    return [
        (name, Capped(number, number if full else most), oldest)
        for name, number, oldest in rows
    ]


def _questions() -> QuerySet[StepRun]:
    return asked().order_by("pk").annotate(of=definition_name())


def _of_verdict() -> QuerySet[InboxEvent]:
    return with_verdict(MARK).annotate(of=definition_name("process_id"))


def _overdue_events() -> QuerySet[InboxEvent]:
    return overdue_events().annotate(of=definition_name("process_id"))


def _escalated() -> QuerySet[ProcessInstance]:
    rows = ProcessInstance.objects.escalated()
    found: QuerySet[ProcessInstance] = rows.annotate(of=F("name"))
    return found


def _failures() -> Rows:
    """The newest open failures, those of one cause together."""
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
    """Since when the first deadline of a process is over."""
    visits = overdue_visits().filter(instance=OuterRef("pk")).order_by("wake_at")
    return Subquery(visits.values("wake_at")[:1])


def _together(rows: Iterable[tuple[str | None, int, datetime | None]]) -> Rows:
    """Rows of one definition as one, with the oldest of them."""
    found: dict[str | None, tuple[int, datetime | None]] = {}
    for name, number, at in rows:
        before, oldest = found.get(name, (0, at))
        earliest = min((one for one in (oldest, at) if one), default=None)
        found[name] = before + number, earliest
    return [(name, *counted) for name, counted in found.items()]
