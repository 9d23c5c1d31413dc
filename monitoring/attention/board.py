"""The first page: problems and their numbers, the last hour, and the state of workers and queues."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from monitoring.attention.headline import current_problems
from monitoring.attention.health import Health
from monitoring.attention.last_hour import Hour, last_hour
from monitoring.attention.problem_counts import (
    ProblemsByDefinition,
    ProblemsByKind,
    problems_by_definition,
    problems_of_definitions,
)
from monitoring.attention.problems import Problem
from monitoring.attention.untaken_notices import untaken_notices
from monitoring.lists.failures.failures import AlikeFailures, largest_group
from monitoring.probes import pulse
from monitoring.probes.machinery import Machinery
from monitoring.probes.pulse import Beat
from monitoring.probes.unserved_work import unserved_by_definition
from monitoring.queries.counts import FEW, MARK, Capped, ForEach, count_by
from orchestrator.containers import group_by_key
from orchestrator.models import Definition, ProcessInstance

COLUMNS = ("failures", "overdue", "stalled", "retrying", "events")

ROWS = 30
"""Definitions that have a row with figures; the page only names the others."""


@dataclass(frozen=True)
class DefinitionRow:
    """A definition with its problems, its number of live processes, and its last hour."""

    name: str
    needs: ProblemsByKind
    live: Capped
    hour: Hour

    @property
    def rank(self) -> tuple[bool, bool, int, bool, str]:
        """The sort key; the row with the lowest key is the most urgent."""
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
        """The problems with a column of their own; events only for readers who may see them."""
        return [self.needs[kind] for kind in COLUMNS if kind in self.needs]

    @property
    def wanting(self) -> list[Problem]:
        """The problems with a number above zero."""
        return [need for need in self.needs.values() if need.number]


@dataclass(frozen=True)
class Board:
    """Everything that the first page shows.

    Args:
        checked_at: the time of the queries, by the clock of the database; the hour ends then.
        problems: the most urgent first.
        largest: the group of failures for the headline.
        needs: the problems of all definitions, by kind.
        definitions: the rows, the most urgent first.
        others: the names of definitions without a row.
        hour: the last hour in all.
    """

    checked_at: datetime
    problems: list[Problem]
    largest: AlikeFailures | None
    needs: ProblemsByKind
    definitions: list[DefinitionRow]
    others: list[str]
    hour: Hour
    redis: Beat
    live: Beat

    @property
    def events(self) -> bool:
        """Whether the page shows events."""
        return "events" in self.needs

    @property
    def tiles(self) -> list[Problem]:
        """The totals with a list; a kind without `always` is shown only above zero."""
        shown = (n for n in self.needs.values() if n.number or n.kind.always)
        return [need for need in shown if need.address]


def board(
    health: Health, *, events: bool, seen: Collection[str] | None = None
) -> Board:
    """Return the first page, from bounded queries along indexes.

    Args:
        health: the counts of the menu.
        events: whether the reader may see events.
        seen: the definitions that the reader may see; None for all. Problems of queues are shown only for all.
    """
    now = health.machinery.now
    stored = Definition.objects.order_by("name").values_list("name", flat=True)
    names = [name for name in dict.fromkeys(stored) if seen is None or name in seen]
    hours = last_hour(now, seen)
    if seen is None:
        found = problems_by_definition(health, names)
        largest = largest_group() if health.failures else None
    else:
        found, largest = problems_of_definitions(names), largest_group(names)
    if not events:
        for of_kind in found.values():
            of_kind.pop("events", None)
    _add_unserved(found, health.machinery)
    redis, live = pulse.redis.beat(), pulse.live.beat()
    notices = untaken_notices(now)
    every = current_problems(health.machinery, found[""], largest, redis, live, notices)
    rows = sorted(_rows(names, found, hours), key=lambda row: row.rank)
    return Board(
        checked_at=now,
        problems=[one for one in every if seen is None or not one.names],
        largest=largest,
        needs=found[""],
        definitions=rows[:ROWS],
        others=[row.name for row in rows[ROWS:]],
        hour=hours[""],
        redis=redis,
        live=live,
    )


def _add_unserved(found: ProblemsByDefinition, machinery: Machinery) -> None:
    """Add the due work of each definition that no worker will do, before its other problems."""
    works = group_by_key(
        (work.definition, work) for work in unserved_by_definition(machinery)
    )
    for name in works.keys() & found.keys():
        number = Capped.of(
            sum(one.number.number for one in works[name]),
            more=any(one.number.at_least for one in works[name]),
        )
        queues = tuple(dict.fromkeys(one.queue for one in works[name]))
        since = works[name][0].since
        problem = Problem("unserved", number, since, name, queues)
        found[name] = {"unserved": problem, **found[name]}


def _live_processes() -> QuerySet[ProcessInstance]:
    """Return the live processes of a definition."""
    return ProcessInstance.objects.live().filter(name=MARK)


def _rows(
    names: Sequence[str], needed: ProblemsByDefinition, hours: Mapping[str, Hour]
) -> list[DefinitionRow]:
    live = dict(count_by(ForEach(_live_processes, names, alike=True), "name", cap=FEW))
    return [
        DefinitionRow(
            name, needed[name], Capped(live.get(name, 0), FEW), hours.get(name, Hour())
        )
        for name in names
    ]
