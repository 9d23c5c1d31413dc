"""The events page: events that no process took, and events that wait for a process."""

from django.db.models import Q, QuerySet

from monitoring.queries.any_of import any_of
from monitoring.queries.counts import CAP, FEW, Capped, count_each
from monitoring.queries.distinct_values import distinct_values
from monitoring.queries.lists import KeyedPage, make_page, parse_number
from monitoring.queries.processes import definition_name
from orchestrator.models import InboxEvent
from orchestrator.models.inbox_event import PROBLEMS

PAGE = 30
SAME_ID = 200
"""The maximum number of events with one id that a search finds; several senders may use the same id."""

SOURCES = 200
"""The maximum number of sources, by name, that a search for an id covers."""
TABS = (*PROBLEMS, "parked")


def event_page(
    tab: str, before: str = "", q: str = "", definition: str = "", size: int = 0
) -> KeyedPage[InboxEvent]:
    """Return a page of one tab, newest first; the tab "all" has all events that need a person.

    The events of one definition are found among the newest of all events.
    """
    found: set[int] = set()
    size = size or PAGE
    for rows in _parts(tab, definition).values():
        if q:
            rows = rows.filter(Q(event_id=q) | Q(correlation_key=q) | Q(type=q))
        if (key := parse_number(before)) is not None:
            rows = rows.filter(pk__lt=key)
        keys = rows.order_by("-pk").values_list("pk", flat=True)
        found.update(keys[: size + 1])
    page = make_page(sorted(found, reverse=True), size, int)
    return page.of(listed_events(page.rows))


def listed_events(keys: list[int]) -> list[InboxEvent]:
    """Return the events of a list with their related rows, newest first."""
    rows = InboxEvent.objects.select_related("process__definition", "caused_by")
    rows = rows.defer("process__definition__graph", "process__data")
    return list(rows.filter(any_of("pk", keys)).order_by("-pk"))


def events_with_verdict(name: str) -> QuerySet[InboxEvent]:
    """Return the events with a verdict, newest first."""
    return InboxEvent.objects.filter(verdict=name).order_by("-pk")


def overdue_events() -> QuerySet[InboxEvent]:
    """Return the parked events whose patience is over, the longest overdue first."""
    return InboxEvent.objects.overdue().order_by("patience_until")


def event_tabs(definition: str) -> list[tuple[str, Capped]]:
    """Return the number on each tab."""
    needed = _parts("all", definition)
    counted = count_each(needed | _parts("parked", definition))
    in_all = sum(each.number for name, each in counted.items() if name != "parked")
    each = [(name, counted[name]) for name in TABS]
    return [("all", Capped(min(in_all, FEW), FEW)), *each]


def _parts(tab: str, definition: str) -> dict[str, QuerySet[InboxEvent]]:
    """Return the queries of a tab, each along an index, newest first; "all" has only the overdue parked events."""
    names = [tab] if tab in TABS else PROBLEMS
    parts = {name: events_with_verdict(name) for name in names}
    if tab not in TABS:
        parts["overdue"] = overdue_events()
    if not definition:
        return parts
    return {name: _limit_to(rows, definition) for name, rows in parts.items()}


def _limit_to(rows: QuerySet[InboxEvent], definition: str) -> QuerySet[InboxEvent]:
    """Limit events to processes of a definition, among the first events."""
    newest = rows.values("pk")[:CAP]
    named = definition_name("process_id")
    some = InboxEvent.objects.filter(pk__in=newest).alias(named=named)
    found: QuerySet[InboxEvent] = some.filter(named=definition)
    return found


def events_with_id(event_id: str) -> list[int]:
    """Return the keys of the events with this id, by the index that begins with the source."""
    sources = distinct_values(InboxEvent, "source", SOURCES)
    rows = InboxEvent.objects.filter(source__in=sources, event_id=event_id)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:SAME_ID])
