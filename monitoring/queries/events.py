"""The events page: those that no process took, and those still waiting for one."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from monitoring.queries.counts import CAP, Capped, capped
from orchestrator.models import InboxEvent
from orchestrator.models.inbox_event import PROBLEMS

PAGE = 50
SOURCES = 200
"""Of so many sources, in the order of their names, an event is found by its id alone."""
TABS = (*PROBLEMS, "parked")


@dataclass(frozen=True)
class EventPage:
    """One tab's events, newest first, the key of the next page, and the number on each tab."""

    tab: str
    rows: list[InboxEvent]
    older: int | None
    tabs: list[tuple[str, Capped]]


def event_page(
    tab: str, before: str = "", q: str = "", definition: str = ""
) -> EventPage:
    """A page of one tab; the tab "all" holds everything that needs a person.

    Those for processes of one definition are looked for among the newest.
    """
    found: dict[int, InboxEvent] = {}
    for rows in _parts(tab, definition):
        if q:
            rows = rows.filter(Q(event_id=q) | Q(correlation_key=q) | Q(type=q))
        if before.isdecimal():
            rows = rows.filter(pk__lt=int(before[:18]))
        shown = rows.select_related("process__definition")
        shown = shown.defer("process__definition__graph").order_by("-pk")[: PAGE + 1]
        found |= {event.pk: event for event in shown}
    ordered = [found[pk] for pk in sorted(found, reverse=True)]
    older = ordered[PAGE - 1].pk if len(ordered) > PAGE else None
    counts = [(name, capped(_matching(name, definition))) for name in ("all", *TABS)]
    return EventPage(tab, ordered[:PAGE], older, counts)


def _parts(tab: str, definition: str) -> list[QuerySet[InboxEvent]]:
    """A tab as parts that an index finds from the newest to the oldest."""
    if tab in TABS or definition:
        return [_matching(tab, definition)]
    needing = InboxEvent.objects.needing_a_person()
    return [needing.filter(verdict=name) for name in TABS]


def _matching(tab: str, definition: str) -> QuerySet[InboxEvent]:
    rows = InboxEvent.objects.needing_a_person()
    if tab in TABS:
        rows = InboxEvent.objects.filter(verdict=tab)
    if not definition:
        return rows
    newest = rows.filter(process__isnull=False).order_by("-pk").values("pk")[:CAP]
    return rows.filter(pk__in=newest, process__name=definition)


def received_as(event_id: str) -> list[int]:
    """The keys of the events to which their senders gave this id, by the index that begins with the source."""
    rows = InboxEvent.objects.filter(source__in=_sources(), event_id=event_id)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:PAGE])


def _sources() -> list[str]:
    """Who has sent anything; of each the next one is asked for, since there are few with many events each."""
    rows = InboxEvent.objects.order_by("source").values_list("source", flat=True)
    found: list[str] = []
    source = rows.first()
    while source is not None and len(found) < SOURCES:
        found.append(source)
        source = rows.filter(source__gt=source).first()
    return found
