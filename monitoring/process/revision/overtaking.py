"""The events that overtook an earlier event, which was parked or had failed.

No row stores it: it follows from the order of receipt and the order of transitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from orchestrator.models import InboxEvent, ProcessInstance, Verdict

NAMED = 3
"""The maximum number of events that one row names; it counts the others."""

LOOKED_AT = 1_000
"""The maximum number of later events that one page reads, the newest first."""

UNDECIDED = (Verdict.RECEIVED, Verdict.PARKED, Verdict.UNROUTED, Verdict.FAILED)
"""Verdicts of events that may still move the process; people retry failed ones."""


@dataclass(frozen=True)
class OvertakingEvents:
    """The types of the first overtaking events, in the order of receipts, and the number of others."""

    types: list[str]
    more: int


def find_overtaking(
    instance: ProcessInstance,
    events: Iterable[InboxEvent],
    below: int | None = None,
    moved: Collection[InboxEvent] | None = None,
) -> dict[int, OvertakingEvents]:
    """Find the events that overtook each of these events, by the keys of the overtaken.

    Args:
        instance: the process.
        events: some of its events.
        below: a key above the keys of all events received before the last decision; None for no bound.
        moved: all events that have moved the process, if the caller knows them.
    """
    open_, decided = list[InboxEvent](), list[InboxEvent]()
    for event in events:
        is_open = event.revision is None and event.verdict in UNDECIDED
        (open_ if is_open else decided).append(event)
    there = instance.events.all()
    until = there.filter(pk__lt=below) if below is not None else there
    found: dict[int, OvertakingEvents] = {}
    earlier = _moved_before(decided)
    for some, rows, wanted in ((open_, there, Q()), (decided, until, earlier)):
        later = _moving_events(some, rows, wanted) if moved is None else moved
        found |= _find_ahead(some, sorted(later, key=lambda row: row.pk))
    return found


def _moving_events(
    events: list[InboxEvent], there: QuerySet[InboxEvent], wanted: Q
) -> Iterable[InboxEvent]:
    """Return the wanted events that moved the process and were received after the first of some events."""
    if not events:
        return []
    later = there.filter(pk__gt=min(event.pk for event in events)).order_by("-pk")
    looked_at = InboxEvent.objects.filter(pk__in=later.values("pk")[:LOOKED_AT])
    rows = looked_at.filter(wanted, revision__isnull=False)
    return rows.only("type", "revision", "handled_at")


def _find_ahead(
    events: list[InboxEvent], moved: list[InboxEvent]
) -> dict[int, OvertakingEvents]:
    """Return the events that overtook some events, among all that moved the process, in the order of receipts."""
    found: dict[int, OvertakingEvents] = {}
    for event in events:
        ahead = [
            row.type for row in moved if row.pk > event.pk and _went_ahead(row, event)
        ]
        if ahead:
            found[event.pk] = OvertakingEvents(ahead[:NAMED], len(ahead[NAMED:]))
    return found


def _went_ahead(row: InboxEvent, event: InboxEvent) -> bool:
    """Whether an event moved the process before another one was decided."""
    if event.revision is not None:
        return (row.revision or 0) < event.revision
    if event.verdict in UNDECIDED or event.handled_at is None:
        return True
    return row.handled_at is not None and row.handled_at < event.handled_at


def _moved_before(decided: list[InboxEvent]) -> Q:
    """Return a condition: the event moved the process before the last of these events was decided."""
    revision = max((event.revision or 0 for event in decided), default=0)
    without = [event.handled_at for event in decided if event.revision is None]
    moments = [moment for moment in without if moment is not None]
    found = Q(revision__lt=revision)
    return found | Q(handled_at__lt=max(moments)) if moments else found
