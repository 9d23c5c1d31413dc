"""The selections of bulk operations: the lists of the console, read in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from monitoring.lists.events.event_search import EventFilters
from monitoring.lists.events.selected_events import next_events
from monitoring.lists.failures.causes import open_of_cause
from monitoring.lists.processes.arm import Arm
from monitoring.lists.processes.filters import Filters
from monitoring.queries.processes import ProcessPlace
from orchestrator.engine.operations import Chunk, Found, Selection
from orchestrator.models import InboxEvent, Incident, ProcessInstance

COLUMNS = ("pk", "revision", "correlation_key")


class MatchingProcesses(Selection):
    """The processes that match the filters of an address."""

    name = "processes"
    model = ProcessInstance

    def narrows(self, about: Mapping[str, Any]) -> bool:
        filters = Filters.from_stored(about)
        return not filters.mistake and bool(filters.narrowing())

    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        arms = list(unchanged_arms(about, until))
        arm, _, place = after.partition(":")
        number = int(arm or 0)
        # The release before noted a key: it went on by keys, and what it has frozen is frozen once.
        before = ProcessPlace.parse(place) if "_" in place else None
        part = arms[number].newest(size, before=before)
        read = part.rows.values_list("started_at", *COLUMNS)
        by_place = {part.place_of(at, row[0]): Found(*row) for at, *row in read}
        ordered = sorted(by_place, reverse=True)
        found = [by_place[at] for at in ordered]
        last = ordered[-1] if len(ordered) == size else part.edge
        if last is not None:
            return Chunk(found, f"{number}:{last}")
        return Chunk(found, f"{number + 1}:" if number + 1 < len(arms) else "")


def unchanged_arms(about: Mapping[str, Any], until: datetime) -> Iterator[Arm]:
    """Yield the parts of the list, without processes that have changed since a page showed it."""
    for arm in Filters.from_stored(about).arms():
        yield replace(arm, rows=arm.rows.filter(changed_at__lte=until))


class FailuresOfCause(Selection):
    """The processes with an open failure of one cause."""

    name = "failures"
    model = ProcessInstance

    def narrows(self, about: Mapping[str, Any]) -> bool:
        return "cause" in about

    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        rows = selected_failures(about, until)
        if after:
            rows = rows.filter(pk__lt=int(after))
        fields = [f"instance__{name}" for name in COLUMNS]
        found = list(rows.values_list("pk", *fields)[:size])
        last = str(found[-1][0]) if len(found) == size else ""
        return Chunk([Found(*row[1:]) for row in found], last)


def selected_failures(about: Mapping[str, Any], until: datetime) -> QuerySet[Incident]:
    """Return the open failures of a stored selection that were open when a page showed it, newest first."""
    rows = open_of_cause(about["cause"])
    return rows.filter(opened_at__lte=until, instance__isnull=False)


class MatchingEvents(Selection):
    """The events without a process that match the filters of an address."""

    name = "events"
    model = InboxEvent

    def narrows(self, about: Mapping[str, Any]) -> bool:
        filters = EventFilters.from_query(about)
        return bool(filters.parameters()) and not filters.mistake

    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        seen = next_events(EventFilters.from_stored(about), until, after, size)
        found = [Found(one.pk, None, one.correlation_key) for one in seen.rows]
        return Chunk(found, seen.older)


SELECTIONS = (MatchingProcesses(), FailuresOfCause(), MatchingEvents())
