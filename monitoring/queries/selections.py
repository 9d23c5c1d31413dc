"""What bulk operations are done to: the lists of the console, found by the code that shows them, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from monitoring.queries.failures import open_of_cause
from monitoring.queries.instances import Arm, Filters
from orchestrator.engine.operations import Chunk, Found, Selection
from orchestrator.models import InboxEvent, Incident, ProcessInstance

COLUMNS = ("pk", "revision", "correlation_key")


class MatchingProcesses(Selection):
    """The processes of the list, narrowed as its address says."""

    name = "processes"
    model = ProcessInstance

    def narrows(self, about: Mapping[str, Any]) -> bool:
        return any(filters_of(about).parameters().values())

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
    """The filters of a stored selection."""
    given: dict[str, Any] = {name: str(value) for name, value in about.items()}
    return Filters(**given)


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


class EventsWithVerdict(Selection):
    """The events with one verdict, of all types or of one."""

    name = "events"
    model = InboxEvent

    def narrows(self, about: Mapping[str, Any]) -> bool:
        return bool(about.get("verdict"))

    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        rows = events_of(about, until)
        if after:
            rows = rows.filter(pk__lt=int(after))
        found = list(rows.values_list("pk", "correlation_key")[:size])
        last = str(found[-1][0]) if len(found) == size else ""
        return Chunk([Found(pk, None, key) for pk, key in found], last)


def events_of(about: Mapping[str, Any], until: datetime) -> QuerySet[InboxEvent]:
    """The events of a stored selection, newest first; those that came after they were shown are not among them."""
    since = Q(received_at__gt=until) | Q(handled_at__gt=until)
    rows = InboxEvent.objects.filter(~since, verdict=about["verdict"])
    return rows.order_by("-pk")


SELECTIONS = (MatchingProcesses(), FailuresOfCause(), EventsWithVerdict())
