"""Which events went ahead of one that was received before them: while it was parked, or had failed.

No row says so: it is read from the order of the receipts and that in which they moved the process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from orchestrator.models import InboxEvent, ProcessInstance, Verdict

NAMED = 3
"""Events that one row names; of more it says how many there are."""

LOOKED_AT = 1_000
"""Later events that one page looks at, the latest received first."""

UNDECIDED = (Verdict.RECEIVED, Verdict.PARKED, Verdict.UNROUTED, Verdict.FAILED)
"""What may still move the process, also when it has failed: people try it again."""


@dataclass(frozen=True)
class WentAhead:
    """The types of the first events that went ahead, in the order of their receipts, and how many there are beside."""

    types: list[str]
    more: int


def overtaken(
    instance: ProcessInstance,
    events: Iterable[InboxEvent],
    below: int | None = None,
    moved: Collection[InboxEvent] | None = None,
) -> dict[int, WentAhead]:
    """What went ahead of those of these events that were overtaken, by their keys.

    Args:
        instance: the process.
        events: some of its events.
        below: all that was received before the last of those decided has a smaller key.
        moved: all events that have moved it; None if they are not known.
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
    """The wanted ones that have moved the process, of those received after the first of some events."""
    if not events:
        return []
    later = there.filter(pk__gt=min(event.pk for event in events)).order_by("-pk")
    looked_at = InboxEvent.objects.filter(pk__in=later.values("pk")[:LOOKED_AT])
    rows = looked_at.filter(wanted, revision__isnull=False)
    return rows.only("type", "revision", "handled_at")


def _ahead(events: list[InboxEvent], moved: list[InboxEvent]) -> dict[int, WentAhead]:
    """What went ahead of some events, among those that have moved the process, in the order of their receipts."""
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
    """What moved the process before the last of these events was decided."""
    revision = max((event.revision or 0 for event in decided), default=0)
    without = [event.handled_at for event in decided if event.revision is None]
    moments = [moment for moment in without if moment is not None]
    found = Q(revision__lt=revision)
    return found | Q(handled_at__lt=max(moments)) if moments else found
