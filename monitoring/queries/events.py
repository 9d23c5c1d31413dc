"""The events page: those that no process took, and those still waiting for one."""

from django.db.models import Q, QuerySet

from monitoring.queries.among import among
from monitoring.queries.counts import CAP, FEW, Capped, each_capped
from monitoring.queries.distinct import different
from monitoring.queries.lists import KeyedPage, number_in, page_of
from monitoring.queries.processes import definition_name
from orchestrator.models import InboxEvent
from orchestrator.models.inbox_event import PROBLEMS

PAGE = 30
SAME_ID = 200
"""Events of one id that are found by it, the newest: others may have given the same."""

SOURCES = 200
"""Of so many sources, in the order of their names, an event is found by its id alone."""
TABS = (*PROBLEMS, "parked")


def event_page(
    tab: str, before: str = "", q: str = "", definition: str = "", size: int = 0
) -> KeyedPage[InboxEvent]:
    """A page of one tab, newest first; the tab "all" holds everything that needs a person.

    Those for processes of one definition are looked for among the newest.
    """
    found: set[int] = set()
    size = size or PAGE
    for rows in _parts(tab, definition):
        if q:
            rows = rows.filter(Q(event_id=q) | Q(correlation_key=q) | Q(type=q))
        if (key := number_in(before)) is not None:
            rows = rows.filter(pk__lt=key)
        keys = rows.order_by("-pk").values_list("pk", flat=True)
        found.update(keys[: size + 1])
    page = page_of(sorted(found, reverse=True), size, int)
    return page.of(shown(page.rows))


def shown(keys: list[int]) -> list[InboxEvent]:
    """Events with all that a list tells of them, the newest first."""
    rows = InboxEvent.objects.select_related("process__definition", "caused_by")
    rows = rows.defer("process__definition__graph", "process__data")
    return list(rows.filter(among("pk", keys)).order_by("-pk"))


def by_verdict() -> dict[str, QuerySet[InboxEvent]]:
    """What needs a person, in parts that an index finds from the newest to the oldest; of those parked, the overdue."""
    problems = {name: with_verdict(name) for name in PROBLEMS}
    return {**problems, "parked": overdue_events()}


def with_verdict(name: str) -> QuerySet[InboxEvent]:
    """The events with a verdict, the newest first."""
    return InboxEvent.objects.filter(verdict=name).order_by("-pk")


def overdue_events() -> QuerySet[InboxEvent]:
    """Those parked whose patience is over, the longest first."""
    return InboxEvent.objects.overdue().order_by("patience_until")


def tabs(definition: str) -> list[tuple[str, Capped]]:
    """The number on each tab."""
    [parked] = _parts("parked", definition)
    needed = dict(zip(by_verdict(), _parts("all", definition), strict=True))
    overdue = needed.pop("parked")
    counted = each_capped({**needed, "parked": parked, "overdue": overdue})
    in_all = sum(each.number for name, each in counted.items() if name != "parked")
    each = [(name, counted[name]) for name in TABS]
    return [("all", Capped(min(in_all, FEW), FEW)), *each]


def _parts(tab: str, definition: str) -> list[QuerySet[InboxEvent]]:
    parts = list(by_verdict().values())
    if tab in TABS:
        parts = [InboxEvent.objects.filter(verdict=tab).order_by("-pk")]
    return [_narrowed(rows, definition) for rows in parts] if definition else parts


def _narrowed(rows: QuerySet[InboxEvent], definition: str) -> QuerySet[InboxEvent]:
    """Those whose process is one of the definition's, among the first in their order."""
    newest = rows.values("pk")[:CAP]
    named = definition_name("process_id")
    some = InboxEvent.objects.filter(pk__in=newest).alias(named=named)
    found: QuerySet[InboxEvent] = some.filter(named=definition)
    return found


def received_as(event_id: str) -> list[int]:
    """The keys of the events to which their senders gave this id, by the index that begins with the source."""
    sources = different(InboxEvent, "source", SOURCES)
    rows = InboxEvent.objects.filter(source__in=sources, event_id=event_id)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:SAME_ID])
