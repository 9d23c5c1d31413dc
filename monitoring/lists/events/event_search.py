"""The search for events by id, type, key, verdict and time, newest first, with their outcomes in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.base.days import between_days, day_mistakes, midnight, parse_day
from monitoring.base.graphs import labels_of
from monitoring.base.requests import parse_uuid
from monitoring.base.statuses import look
from monitoring.lists.events.events import events_with_id, listed_events
from monitoring.queries.any_of import any_of
from monitoring.queries.bounded_search import first_matching
from monitoring.queries.keys_by_time import first_since
from monitoring.queries.lists import KeyedPage, Search, make_page, parse_number
from monitoring.queries.processes import processes_with_key
from orchestrator.models import Checkpoint, InboxEvent, ProcessInstance, Verdict
from orchestrator.models.inbox_event import PROBLEMS

PAGE = 30
LOOKED_AT = 1_000
"""The number of events that one page checks for unindexed conditions; the next page continues after them."""

PROCESSES = 50
"""The maximum number of processes with one key whose events a search finds."""

EACH = 500
"""The maximum number of events that a search by key or id finds."""

KEPT = (*PROBLEMS, str(Verdict.PARKED))
"""The verdicts with an index."""


@dataclass(frozen=True)
class EventFilters(Search):
    """The filters of the search for events.

    Args:
        q: the event id of the sender.
        type: its type.
        key: the business key of the event or of its process, or a process id.
        verdict: a value of `Verdict`.
        since: the first day of receipt, as in 2026-11-23; the parameter is called from.
        until: the last day of receipt; the parameter is called to.
    """

    q: str = ""
    type: str = ""
    key: str = ""
    verdict: str = ""
    since: str = ""
    until: str = ""

    LABELS = {
        "q": gettext_lazy("Event id"),
        "type": gettext_lazy("Type"),
        "key": gettext_lazy("Key"),
        "verdict": gettext_lazy("Verdict"),
        "from": gettext_lazy("From"),
        "to": gettext_lazy("To"),
    }

    def words(self) -> dict[str, Any]:
        return {"verdict": look(self.verdict).word}

    def mistakes(self) -> Iterator[str]:
        if self.verdict and self.verdict not in Verdict.values:
            yield _("There is no such verdict: choose one of those offered.")
        yield from day_mistakes(self.since, self.until)

    def found(self) -> QuerySet[InboxEvent]:
        """Return the rows that an index finds."""
        rows: QuerySet[InboxEvent] = InboxEvent.objects.all()
        if self.mistake:
            return rows.none()
        if self.q:
            return rows.filter(pk__in=events_with_id(self.q))
        if self.key:
            return rows.filter(pk__in=_keys_of_text(self.key))
        rows = self._in_time(rows)
        return rows.filter(verdict=self.verdict) if self.verdict in KEPT else rows

    def unindexed(self) -> Q:
        """Return the conditions that no index finds."""
        found = Q()
        if self.type:
            found &= Q(type=self.type)
        if self.q and self.key:
            found &= Q(pk__in=_keys_of_text(self.key))
        if self.verdict and (self.q or self.key or self.verdict not in KEPT):
            found &= Q(verdict=self.verdict)
        found &= between_days("received_at", self.since, self.until)
        return found

    def _in_time(self, rows: QuerySet[InboxEvent]) -> QuerySet[InboxEvent]:
        """Limit rows to the keys of the first and the last day."""
        if day := parse_day(self.since):
            first = first_since(InboxEvent, "received_at", midnight(day))
            rows = rows.filter(pk__gte=first)
        if day := parse_day(self.until):
            end = first_since(InboxEvent, "received_at", midnight(day, 1))
            rows = rows.filter(pk__lt=end)
        return rows


def search_events(
    filters: EventFilters, before: str = "", size: int = 0
) -> KeyedPage[InboxEvent]:
    """Return a page of matching events, newest first; a page of rare matches may be partly filled."""
    keys = filters.found().order_by("-pk").values_list("pk", flat=True)
    if (place := parse_number(before)) is not None:
        keys = keys.filter(pk__lt=place)
    size = size or PAGE
    unindexed = filters.unindexed()

    def keys_behind(edge: int | None, many: int) -> list[int]:
        # As values: with a subquery PostgreSQL may scan all events by type first.
        return list((keys if edge is None else keys.filter(pk__lt=edge))[:many])

    def matching(some: list[int], number: int) -> list[int]:
        rows = InboxEvent.objects.filter(unindexed, any_of("pk", some))
        return list(rows.order_by("-pk").values_list("pk", flat=True)[:number])

    if unindexed:
        found, edge = first_matching(size + 1, LOOKED_AT, keys_behind, matching)
    else:
        found, edge = keys_behind(None, size + 1), None
    page = make_page(found, size, int, edge=str(edge or ""))
    return page.of(listed_events(page.rows))


def event_outcomes(events: Iterable[InboxEvent]) -> dict[int, str]:
    """Return the outcome of each event in words."""
    events = list(events)
    steps = _steps([event for event in events if event.revision])
    return {event.pk: _outcome(event, steps) for event in events}


def _outcome(event: InboxEvent, steps: dict[tuple[UUID, int], str]) -> str:
    if event.verdict == Verdict.MOVED and event.process:
        return _move_text(event, event.process, steps)
    words: dict[str, str] = {
        Verdict.STARTED: _("It started %(process)s."),
        Verdict.REACTED: _("Event handlers took it; no process knows its type."),
        Verdict.IGNORED: _("%(process)s ignored it, as its definition says."),
        Verdict.DISCARDED: _("A person put it aside."),
        Verdict.RECEIVED: _("It is still to be delivered."),
    }
    of = {"process": event.process or event.process_id or event.target}
    return words.get(event.verdict, "") % of


def _move_text(
    event: InboxEvent, process: ProcessInstance, steps: dict[tuple[UUID, int], str]
) -> str:
    """Name the steps from and to which an event moved a process; a workflow in several steps has no single one."""
    labels, revision = labels_of(process.definition), event.revision or 0
    was, now = (steps.get((process.pk, one), "") for one in (revision - 1, revision))
    of = {"process": process, "step": labels.get(was, was), "to": labels.get(now, now)}
    if was and now and was != now:
        return _("It moved %(process)s from %(step)s to %(to)s.") % of
    if now:
        return _("%(process)s took it in %(to)s and stayed there.") % of
    return _("It moved %(process)s.") % of


def _steps(events: list[InboxEvent]) -> dict[tuple[UUID, int], str]:
    """Return the step of a process before and after the revision of each event."""
    # One condition for all processes at the same revision: compiling one for each event takes longer than running it.
    standing: dict[int, set[UUID]] = defaultdict(set)
    for event in events:
        if event.process_id and event.revision:
            standing[event.revision].add(event.process_id)
    wanted = Q()
    for revision, processes in standing.items():
        span = Q(revision__in=[revision - 1, revision])
        wanted |= span & Q(any_of("instance_id", processes))
    if not wanted:
        return {}
    found = Checkpoint.objects.filter(wanted)
    rows = found.values_list("instance", "revision", "steps")
    return {(pk, revision): _only_step(steps) for pk, revision, steps in rows}


def _only_step(steps: Any) -> str:
    """Return the name of the only step; "" for several steps."""
    names = list(steps)
    return str(names[0]) if len(names) == 1 else ""


def _keys_of_text(text: str) -> list[int]:
    """Return the keys of the newest events of a process id or business key, by indexes."""
    own: list[QuerySet[InboxEvent]] = []
    if key := parse_uuid(text):
        processes = [key]
    else:
        processes = processes_with_key(text, PROCESSES)
        own = [_kept_with_key(verdict, text) for verdict in KEPT]
    of_processes = [InboxEvent.objects.filter(process=pk) for pk in processes]
    found = set[int]()
    for rows in (*own, *of_processes):
        found |= set(rows.order_by("-pk").values_list("pk", flat=True)[:EACH])
    return sorted(found, reverse=True)[:EACH]


def _kept_with_key(verdict: str, key: str) -> QuerySet[InboxEvent]:
    """Return those of the newest events with a verdict that have a key."""
    # Of one verdict, an index has the newest: of several at once, PostgreSQL may walk the whole table.
    rows: QuerySet[InboxEvent] = InboxEvent.objects.filter(verdict=verdict)
    newest = rows.order_by("-pk").values("pk")[:LOOKED_AT]
    return rows.filter(pk__in=newest, correlation_key=key)
