"""What needs a person, by its kind: each number is that of the list to which it leads, with the age of the oldest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

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
from monitoring.queries.definition_name import definition_name
from monitoring.queries.events import overdue_events, with_verdict
from monitoring.queries.failures import names_of, open_of
from monitoring.queries.handled import handled_causes, inbox
from monitoring.queries.health import Health
from monitoring.queries.instances.filters import Filters
from monitoring.queries.overdue import overdue_visits
from monitoring.queries.stalled import stalled_by_definition
from orchestrator.models import InboxEvent, ProcessInstance, Status, StepRun
from orchestrator.models.inbox_event import PROBLEMS


@dataclass(frozen=True)
class Kind:
    """One kind of what needs a person.

    Args:
        words: what so many of it are called.
        label: what stands below its number, and above its column.
        page: the name of the list that has them.
        tone: the colour of its number.
        query: what the list is narrowed to.
        urgent: whether it stands in red; what somebody has been asked for, or has stopped, does not.
        always: whether it is shown when there is none of it, too.
        person: whether it needs a person; what is tried again by itself does not.
    """

    words: Any
    label: Any
    page: str
    tone: str
    query: tuple[tuple[str, str], ...] = ()
    urgent: bool = True
    always: bool = True
    person: bool = True


KINDS = {
    "failures": Kind(
        ngettext_lazy("%(number)s failure", "%(number)s failures", "count"),
        _("failed, need a person"),
        "failures",
        "failed",
    ),
    "stalled": Kind(
        ngettext_lazy("%(number)s stalled", "%(number)s stalled", "count"),
        _("stalled"),
        "stalled",
        "failed",
    ),
    "overdue": Kind(
        ngettext_lazy("%(number)s overdue", "%(number)s overdue", "count"),
        _("overdue"),
        "instances",
        "failed",
        (("overdue", "1"),),
    ),
    "escalated": Kind(
        ngettext_lazy("%(number)s escalated", "%(number)s escalated", "count"),
        _("escalated"),
        "instances",
        "failed",
        (("escalated", "1"),),
        always=False,
    ),
    "events": Kind(
        ngettext_lazy(
            "%(number)s event that nothing took",
            "%(number)s events that nothing took",
            "count",
        ),
        _("events that nothing took"),
        "events",
        "failed",
    ),
    "decisions": Kind(
        ngettext_lazy("%(number)s decision", "%(number)s decisions", "count"),
        _("decisions wanted"),
        "decisions",
        "waiting",
        urgent=False,
    ),
    "retrying": Kind(
        ngettext_lazy("%(number)s retrying", "%(number)s retrying", "count"),
        _("retrying"),
        "instances",
        "retry",
        (("status", str(Status.RETRYING)),),
        urgent=False,
        person=False,
    ),
    "paused": Kind(
        ngettext_lazy("%(number)s paused", "%(number)s paused", "count"),
        _("paused"),
        "instances",
        "retry",
        (("status", str(Status.PAUSED)),),
        urgent=False,
        always=False,
    ),
}
"""In the order of their urgency."""


@dataclass(frozen=True)
class Attention:
    """So many of a kind, of one definition or of all, the oldest of them since when."""

    name: str
    number: Capped
    oldest: datetime | None = None
    definition: str = ""
    listed: bool = True

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def words(self) -> str:
        """The number with what it counts."""
        of = {"number": self.number, "count": self.number.number}
        return str(self.kind.words % of)

    @property
    def tone(self) -> str:
        """The colour of the number; none of a kind has none."""
        return self.kind.tone if self.number else "idle"

    @property
    def address(self) -> str:
        """Where they are listed; "" where no one list has them."""
        if not self.listed:
            return ""
        given = dict(self.kind.query)
        if self.definition:
            given["definition"] = self.definition
        query = f"?{urlencode(given)}" if given else ""
        return f"{reverse(f'monitoring:{self.kind.page}')}{query}"


OfKind = dict[str, Attention]
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
    for kind, counted in counts.items():
        every = sum(number.number for _, number, _ in counted)
        first = min((at for _, _, at in counted if at), default=None)
        in_all[kind] = Attention(kind, Capped(min(every, FEW), FEW), first)
    for kind, listed in (
        ("failures", health.failures),
        ("events", health.events),
        ("decisions", health.decisions),
    ):
        in_all[kind] = Attention(kind, listed, in_all[kind].oldest)
    every_kind = {kind: in_all[kind] for kind in KINDS}
    return AttentionCounts(every_kind, _by_definition(counts, KINDS, names))


def needs_of(names: Collection[str]) -> AttentionCounts:
    """The same for who sees these definitions alone: each number is that of the list of one, and none is of events.

    What is of one definition is looked for among the first of all, as in its list.
    """
    kinds = [kind for kind in KINDS if kind != "events"]
    by_definition = _by_definition(dict(_counted_of(names)), kinds, names)
    in_all = {
        kind: _summed(kind, [needs[kind] for needs in by_definition.values()])
        for kind in kinds
    }
    return AttentionCounts(in_all, by_definition)


def _summed(kind: str, needs: list[Attention]) -> Attention:
    """Several of one kind as one, which has a list if they are of one definition."""
    number = sum(need.number.number for need in needs)
    more = any(need.number.at_least for need in needs)
    oldest = min((need.oldest for need in needs if need.oldest), default=None)
    one = needs[0].definition if len(needs) == 1 else ""
    counted = Capped(number, number if more else number + 1)
    return Attention(kind, counted, oldest, one, listed=len(needs) == 1)


Counted = list[tuple[str | None, Capped, datetime | None]]
"""Names of definitions, each with how many and the oldest; None for what belongs to none."""

Rows = list[tuple[Any, ...]]
"""The same with plain numbers."""


def _by_definition(
    counts: Mapping[str, Counted], kinds: Iterable[str], names: Iterable[str]
) -> dict[str, OfKind]:
    """What was counted by kind, of each definition; also the kinds of which it has none."""
    found: dict[str, OfKind] = {
        name: {kind: Attention(kind, Capped(0, CAP), None, name) for kind in kinds}
        for name in names
    }
    for kind, counted in counts.items():
        for name, number, oldest in counted:
            if name in found:
                found[name][kind] = Attention(kind, number, oldest, name)
    return found


def _counted(health: Health, names: Collection[str]) -> Iterator[tuple[str, Counted]]:
    """Each kind by definition."""
    # Many failures of one definition must not hide the few of another, which nothing else tells of.
    yield "failures", _among(_failures() if health.failures else [], CAP)
    for kind, number, rows, at in _in_menu(health):
        found = grouped(rows, "of", oldest=at, cap=EACH_FOUND) if number else []
        yield kind, _among(found, EACH_FOUND)
    yield "stalled", _among(stalled_by_definition(), CAP)
    yield "overdue", _among(_overdue(), CAP)
    found = grouped(once(_escalated), "of", oldest="escalated_at", cap=EACH_FOUND)
    yield "escalated", _among(found, EACH_FOUND)
    yield from _held_up(names)


def _counted_of(names: Collection[str]) -> Iterator[tuple[str, Counted]]:
    """Each kind but events, of some definitions alone."""
    for kind, rows_of, at in (
        ("failures", open_of, "opened_at"),
        ("decisions", asked, "started_at"),
    ):
        each = (grouped(rows_of(name), "kind", oldest=at, cap=CAP) for name in names)
        yield kind, [_one(name, rows) for name, rows in zip(names, each, strict=True)]
    yield "stalled", _only(names, _among(stalled_by_definition(), CAP))
    yield "overdue", _only(names, _among(_overdue(), CAP))
    escalated = ProcessInstance.objects.escalated().filter(name__in=names)
    found = grouped(escalated, "name", oldest="escalated_at", cap=EACH_FOUND)
    yield "escalated", _among(found, EACH_FOUND)
    yield from _held_up(names)


def _one(name: str, rows: Rows) -> tuple[str, Capped, datetime | None]:
    """Counts of one definition, whatever they are grouped by, as one."""
    number = sum(one for *_, one, _at in rows)
    return name, Capped(number, CAP), min((at for *_, at in rows if at), default=None)


def _only(names: Collection[str], counted: Counted) -> Counted:
    return [one for one in counted if one[0] in names]


def _held_up(names: Collection[str]) -> Iterator[tuple[str, Counted]]:
    """What is tried again, or paused, of each definition."""
    for status, rows in ((Status.RETRYING, _tried_again), (Status.PAUSED, _paused)):
        each = ForEach(rows, sorted(names), alike=True)
        found = grouped(each, "name", oldest="since", cap=FEW)
        yield str(status), [(name, Capped(n, FEW), at) for name, n, at in found]


def _tried_again() -> QuerySet[ProcessInstance]:
    return _live_and(Status.RETRYING)


def _paused() -> QuerySet[ProcessInstance]:
    return _live_and(Status.PAUSED)


def _live_and(status: Status) -> QuerySet[ProcessInstance]:
    """Those of a definition that go on and have that status, with since when."""
    rows = ProcessInstance.objects.live().filter(name=MARK, status=status)
    found: QuerySet[ProcessInstance] = rows.annotate(
        since=Coalesce("paused_at", "changed_at")
    )
    return found


def _among(rows: Rows, most: int) -> Counted:
    """Counts among so many that were looked at: where there are more, each definition may have more."""
    full = sum(number for _, number, _ in rows) >= most
    return [
        (name, Capped(number, number if full else most), oldest)
        for name, number, oldest in rows
    ]


def _in_menu(health: Health) -> Iterator[tuple[str, Capped, list[Part], str]]:
    """What else the menu has counted, with its rows, and the field that says since when."""
    yield "decisions", health.decisions, [once(_questions)], "started_at"
    events: list[Part] = [ForEach(_of_verdict, PROBLEMS), once(_overdue_events)]
    yield "events", health.events, events, "received_at"


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


def urgent(found: Iterable[Attention]) -> bool:
    """Whether any of it stands in red."""
    return any(need.number and need.kind.urgent for need in found)


def for_a_person(found: Iterable[Attention]) -> bool:
    """Whether any of it needs a person."""
    return any(need.number and need.kind.person for need in found)
