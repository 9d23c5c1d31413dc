"""The first page: what is wrong, how many of what need a person, what the last hour was like, and who does the work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from monitoring import pulse
from monitoring.pulse import Beat
from monitoring.queries.attention import OfKind, needs, needs_of
from monitoring.queries.counts import FEW, MARK, Capped, ForEach, grouped
from monitoring.queries.failures import AlikeFailures, largest_group
from monitoring.queries.headline import Facts, problems
from monitoring.queries.health import Health
from monitoring.queries.last_hour import Hour, LastHour, last_hour
from monitoring.queries.problems import Problem
from orchestrator.models import Definition, ProcessInstance

COLUMNS = ("failures", "overdue", "stalled", "retrying", "events")

ROWS = 30
"""Definitions that are shown with their figures; of the others, which need nobody, there are the names."""


@dataclass(frozen=True)
class DefinitionRow:
    """A definition with what needs a person of it, how many of its processes have not ended, and its last hour."""

    name: str
    needs: OfKind
    live: Capped
    hour: Hour

    @property
    def rank(self) -> tuple[bool, bool, int, bool, str]:
        """Its place among others: the lower, the sooner somebody should look."""
        return (
            not self._urgent,
            not any(need.kind.person for need in self.wanting),
            -sum(need.number.number for need in self._urgent),
            not self.live,
            self.name,
        )

    @property
    def _urgent(self) -> list[Problem]:
        return [need for need in self.wanting if need.kind.urgent]

    @property
    def tone(self) -> str:
        """The status that its icon shows."""
        if self._urgent:
            return "failed"
        if self.needs["decisions"].number:
            return "waiting"
        return "retrying" if self.needs["retrying"].number else "done"

    @property
    def cells(self) -> list[Problem]:
        """What has a column of its own; of events only for those who may see them."""
        return [self.needs[kind] for kind in COLUMNS if kind in self.needs]

    @property
    def wanting(self) -> list[Problem]:
        """What there is of anything."""
        return [need for need in self.needs.values() if need.number]


@dataclass(frozen=True)
class Board:
    """Everything that the first page shows.

    Args:
        checked_at: when, by the clock of the database.
        problems: what is wrong, the most urgent first.
        largest: the group of failures that is meant where failures are the most urgent.
        needs: what needs a person in all.
        definitions: the worst first.
        others: the names of those that have no row.
        hour: the last one.
    """

    checked_at: datetime
    problems: list[Problem]
    largest: AlikeFailures | None
    needs: OfKind
    definitions: list[DefinitionRow]
    others: list[str]
    hour: LastHour
    redis: Beat
    live: Beat

    @property
    def events(self) -> bool:
        """Whether anything is said of events."""
        return "events" in self.needs

    @property
    def tiles(self) -> list[Problem]:
        """The numbers in all that have one list: the kinds that are always shown, and those of which there is any."""
        shown = (n for n in self.needs.values() if n.number or n.kind.always)
        return [need for need in shown if need.address]


def board(
    health: Health, *, events: bool, seen: Collection[str] | None = None
) -> Board:
    """How everything stands, by bounded looks along indexes.

    Args:
        health: what has been counted for the menu.
        events: whether the reader may see events; else nothing is said of them.
        seen: the definitions of which anything is said; None for all. Queues are everybody's, and then not named.
    """
    now = health.machinery.now
    stored = Definition.objects.order_by("name").values_list("name", flat=True)
    names = [name for name in dict.fromkeys(stored) if seen is None or name in seen]
    if seen is None:
        found, hour = needs(health, names), last_hour(now)
        largest = largest_group() if health.failures else None
    else:
        found, hour = needs_of(names), last_hour(now).of(names)
        largest = largest_group(names)
    if not events:
        for of_kind in (found.in_all, *found.by_definition.values()):
            of_kind.pop("events", None)
    redis, live = pulse.redis.beat(), pulse.live.beat()
    facts = Facts(health.machinery, found.in_all, largest, redis, live)
    rows = sorted(_rows(names, found.by_definition, hour), key=lambda row: row.rank)
    return Board(
        checked_at=now,
        problems=[one for one in problems(facts) if seen is None or not one.queues],
        largest=largest,
        needs=found.in_all,
        definitions=rows[:ROWS],
        others=[row.name for row in rows[ROWS:]],
        hour=hour,
        redis=redis,
        live=live,
    )


def _of_definition() -> QuerySet[ProcessInstance]:
    """Those of a definition that go on."""
    return ProcessInstance.objects.live().filter(name=MARK)


def _rows(
    names: Sequence[str], needed: dict[str, OfKind], hour: LastHour
) -> list[DefinitionRow]:
    live = dict(grouped(ForEach(_of_definition, names, alike=True), "name", cap=FEW))
    return [
        DefinitionRow(
            name,
            needed[name],
            Capped(live.get(name, 0), FEW),
            hour.by_definition.get(name, Hour()),
        )
        for name in names
    ]
