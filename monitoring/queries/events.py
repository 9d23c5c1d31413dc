"""The events page: those that no process took, and those still waiting for one."""

from dataclasses import dataclass

from django.db.models import QuerySet

from monitoring.queries.counts import Capped, capped
from orchestrator.models import InboxEvent
from orchestrator.models.inbox_event import PROBLEMS

PAGE = 50
TABS = (*PROBLEMS, "parked")


@dataclass(frozen=True)
class EventPage:
    """One tab's events, newest first, the key of the next page, and the number on each tab."""

    tab: str
    rows: list[InboxEvent]
    older: int | None
    tabs: list[tuple[str, Capped]]


def event_page(tab: str, before: str = "", q: str = "") -> EventPage:
    """A page of one tab; the tab "all" holds everything that needs a person."""
    rows = _matching(tab).select_related("process")
    if q:
        rows = (
            rows.filter(event_id=q)
            | rows.filter(correlation_key=q)
            | rows.filter(type=q)
        )
    if before.isdecimal():
        rows = rows.filter(pk__lt=int(before[:18]))
    found = list(rows.order_by("-pk")[: PAGE + 1])
    counts = [(name, capped(_matching(name))) for name in ("all", *TABS)]
    return EventPage(
        tab, found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None, counts
    )


def _matching(tab: str) -> QuerySet[InboxEvent]:
    if tab in TABS:
        return InboxEvent.objects.filter(verdict=tab)
    return InboxEvent.objects.needing_a_person()
