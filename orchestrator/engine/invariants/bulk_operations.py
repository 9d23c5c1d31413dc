"""The invariant of bulk operations: they count the verdicts of their items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from django.db.models import Count

from orchestrator.engine.invariants.stored_sets import WHOLE, StoredPart
from orchestrator.models import BulkItem, BulkOperation, BulkStatus, BulkVerdict

NUMBERS = {
    BulkVerdict.TRIED: "tried",
    BulkVerdict.DONE: "done",
    BulkVerdict.FAILED: "failed",
    BulkVerdict.SKIPPED: "skipped",
    BulkVerdict.REFUSED: "refused",
}
"""Verdict -> the column of the operation that counts it."""


def bulk(part: StoredPart = WHOLE) -> Iterator[str]:
    """I8: a bulk operation counts the verdicts of its items, and has all of them when it is completed."""
    if not part.has_the_rest:
        return
    counted: dict[Any, Counter[str]] = defaultdict(Counter)
    groups = BulkItem.objects.order_by().values_list("operation", "verdict")
    for operation, verdict, number in groups.annotate(number=Count("pk")):
        counted[operation][verdict] = number
    whole = BulkOperation.objects.filter(items_removed_at=None)
    for one in whole.order_by("pk").iterator():
        found = counted[one.pk]
        said = {verdict: getattr(one, name) for verdict, name in NUMBERS.items()}
        said[BulkVerdict.WAITING] = one.waiting
        for verdict, number in said.items():
            if number != found[verdict]:
                yield f"bulk operation {one.pk} says {number} {verdict.value}, of {found[verdict]}"
        yield from _wrong_end(one)


def _wrong_end(one: BulkOperation) -> Iterator[str]:
    """Yield what is wrong with the end of an operation, or keeps it from coming."""
    ended, left = one.status == BulkStatus.COMPLETED, one.waiting + one.tried
    if ended and left:
        yield f"bulk operation {one.pk} has ended with {left} unsettled"
    if ended and one.finished_at is None:
        yield f"bulk operation {one.pk} has ended, but does not say when"
    if one.finished_at is None and one.wake_at is None and one.tried:
        yield f"no worker will look at the {one.tried} under way of bulk operation {one.pk}"
