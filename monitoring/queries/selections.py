"""What bulk operations are done to: the lists of the console, found by the code that shows them, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from monitoring.queries.causes import open_of_cause
from monitoring.queries.event_search import EventFilters
from monitoring.queries.instances.arm import Arm
from monitoring.queries.instances.filters import Filters
from monitoring.queries.kept_events import look
from orchestrator.engine.operations import Chunk, Found, Selection
from orchestrator.models import InboxEvent, Incident, ProcessInstance

COLUMNS = ("pk", "revision", "correlation_key")


class MatchingProcesses(Selection):
    """The processes of the list, narrowed as its address says."""

    name = "processes"
    model = ProcessInstance

    def narrows(self, about: Mapping[str, Any]) -> bool:
        filters = filters_of(about)
        return not filters.mistake and bool(filters.narrowing())

    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        arms = list(unchanged(about, until))
        place, _, key = after.partition(":")
        number = int(place or 0)
        rows, edge = arms[number].newest(size, before=UUID(key) if key else None)
        found = [Found(*row) for row in rows.values_list(*COLUMNS)]
        last = found[-1].target if len(found) == size else edge
        if last is not None:
            return Chunk(found, f"{number}:{last}")
        return Chunk(found, f"{number + 1}:" if number + 1 < len(arms) else "")


def filters_of(about: Mapping[str, Any]) -> Filters:
    """The filters of a stored selection.

    Raises:
        TypeError: a newer version has stored one that is not known here: without it more would match than was meant.
    """
    given: dict[str, Any] = {name: str(value) for name, value in about.items()}
    return Filters(**given)


def known_filters(about: Mapping[str, Any]) -> Filters:
    """Those filters of a stored selection that this version knows and its reader may, to be shown."""
    known = {name: about.get(name) for name in Filters.names()}
    return filters_of({name: one for name, one in known.items() if one is not None})


def unchanged(about: Mapping[str, Any], until: datetime) -> Iterator[Arm]:
    """The parts of the list, without what has changed since it was shown."""
    for arm in filters_of(about).arms():
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
        rows = failures_of(about, until)
        if after:
            rows = rows.filter(pk__lt=int(after))
        fields = [f"instance__{name}" for name in COLUMNS]
        found = list(rows.values_list("pk", *fields)[:size])
        last = str(found[-1][0]) if len(found) == size else ""
        return Chunk([Found(*row[1:]) for row in found], last)


def failures_of(about: Mapping[str, Any], until: datetime) -> QuerySet[Incident]:
    """The open failures of a stored selection, newest first, as they were when they were shown."""
    rows = open_of_cause(about["cause"])
    return rows.filter(opened_at__lte=until, instance__isnull=False)


class MatchingEvents(Selection):
    """The events of the list that nothing took, narrowed as its address says."""

    name = "events"
    model = InboxEvent

    def narrows(self, about: Mapping[str, Any]) -> bool:
        filters = EventFilters.from_query(about)
        return bool(filters.parameters()) and not filters.mistake

    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        filters = event_filters_of(about)
        seen = look(filters, until, int(after or 0), size)
        found = [Found(one.pk, None, one.key) for one in seen.found]
        return Chunk(found, "" if seen.after is None else str(seen.after))


def event_filters_of(about: Mapping[str, Any]) -> EventFilters:
    """The filters of a stored selection of events.

    Raises:
        TypeError: a newer version has stored one that is not known here: without it more would match than was meant.
    """
    if unknown := set(about) - set(EventFilters.names().values()):
        raise TypeError(f"events are not filtered by {', '.join(sorted(unknown))}")
    return EventFilters.from_query(about)


SELECTIONS = (MatchingProcesses(), FailuresOfCause(), MatchingEvents())
