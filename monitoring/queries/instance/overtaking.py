"""Events that overtook an earlier one, which was parked or had failed.

No row stores this: the order of receipts and the order of transitions tell it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from orchestrator.models import InboxEvent, ProcessInstance, Verdict

NAMED = 3
"""Most events that one row names; it counts the others."""

LOOKED_AT = 1_000
"""Most later events that one page reads, the newest first."""

UNDECIDED = (Verdict.RECEIVED, Verdict.PARKED, Verdict.UNROUTED, Verdict.FAILED)
"""Verdicts of events that may still move the process; people retry failed ones."""


@dataclass(frozen=True)
class WentAhead:
    """The types of the first overtaking events, in the order of receipts, and the number of others."""

    types: list[str]
    more: int


def overtaken(
    instance: ProcessInstance,
    events: Iterable[InboxEvent],
    below: int | None = None,
    moved: Collection[InboxEvent] | None = None,
) -> dict[int, WentAhead]:
    """Finds the events that overtook each of these events, by the keys of the overtaken.

    Args:
        instance: the process.
        events: some of its events.
        below: a key that is higher than every event received before the last decision; None for no bound.
        moved: all events that have moved it, if the caller knows them.
    """
    open_, decided = list[InboxEvent](), list[InboxEvent]()
    for event in events:
        is_open = event.revision is None and event.verdict in UNDECIDED
        (open_ if is_open else decided).append(event)
    there = instance.events.all()
    until = there.filter(pk__lt=below) if below is not None else there
    found: dict[int, WentAhead] = {}
    for some, rows, wanted in (
        (open_, there, Q()),
        (decided, until, _before(decided)),
    ):
        later = _moved(some, rows, wanted) if moved is None else moved
        found |= _ahead(some, sorted(later, key=lambda row: row.pk))
    return found


def _moved(
    events: list[InboxEvent], there: QuerySet[InboxEvent], wanted: Q
) -> Iterable[InboxEvent]:
    """The wanted events that moved the process and were received after the first of some events."""
    if not events:
        return []
    later = there.filter(pk__gt=min(event.pk for event in events)).order_by("-pk")
    looked_at = InboxEvent.objects.filter(pk__in=later.values("pk")[:LOOKED_AT])
    rows = looked_at.filter(wanted, revision__isnull=False)
    return rows.only("type", "revision", "handled_at")


def _ahead(events: list[InboxEvent], moved: list[InboxEvent]) -> dict[int, WentAhead]:
    """The events that overtook some events, among all that moved the process, in the order of receipts."""
    found: dict[int, WentAhead] = {}
    for event in events:
        ahead = [
            row.type for row in moved if row.pk > event.pk and _went_ahead(row, event)
        ]
        if ahead:
            found[event.pk] = WentAhead(ahead[:NAMED], len(ahead[NAMED:]))
    return found


def _went_ahead(row: InboxEvent, event: InboxEvent) -> bool:
    """Whether an event moved the process before another one was decided."""
    if event.revision is not None:
        return (row.revision or 0) < event.revision
    if event.verdict in UNDECIDED or event.handled_at is None:
        return True
    return row.handled_at is not None and row.handled_at < event.handled_at


def _before(decided: list[InboxEvent]) -> Q:
    """A condition: the event moved the process before the last of these events was decided."""
    revision = max((event.revision or 0 for event in decided), default=0)
    without = [event.handled_at for event in decided if event.revision is None]
    moments = [moment for moment in without if moment is not None]
    found = Q(revision__lt=revision)
    return found | Q(handled_at__lt=max(moments)) if moments else found
