"""Removing the items of bulk operations that ended long ago, some at a time.

The operations stay, with their numbers: the audit names them, and its rows are never changed.
"""

from __future__ import annotations

import time
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from orchestrator.engine.storage.batch import database_now
from orchestrator.models import BulkItem, BulkOperation

AT_ONCE = 1_000
"""Items that one transaction removes."""


def due(ended_before: datetime) -> QuerySet[BulkOperation]:
    """The operations whose items may go: what has ended before a moment."""
    items = BulkItem.objects.filter(operation=OuterRef("pk"))
    ended = BulkOperation.objects.filter(finished_at__lt=ended_before, tried=0)
    return ended.filter(Exists(items))


def prune_items(ended_before: datetime, rest: float) -> int:
    """Removes the items of all operations that ended before a moment. Returns how many that were.

    Args:
        ended_before: that moment.
        rest: how many times as long as it worked it pauses.

    Raises:
        DatabaseError: it refused for now.
    """
    removed = 0
    for key in list(due(ended_before).order_by("pk").values_list("pk", flat=True)):
        more = True
        while more:
            begun = time.monotonic()
            number, more = _some(key)
            removed += number
            time.sleep((time.monotonic() - begun) * rest)
    return removed


def _some(key: UUID) -> tuple[int, bool]:
    """Removes some items of an operation; how many, and whether there are more."""
    with transaction.atomic():
        rows = BulkOperation.objects.filter(pk=key)
        operation = rows.select_for_update(skip_locked=True).first()
        if operation is None:  # another run is at it
            return 0, False
        items = BulkItem.objects.filter(operation=operation).order_by("pk")
        keys = list(items.values_list("pk", flat=True)[:AT_ONCE])
        BulkItem.objects.filter(pk__in=keys)._raw_delete("default")
        if operation.items_removed_at is None:  # its numbers are no longer theirs
            operation.items_removed_at = database_now()
            operation.save(update_fields=["items_removed_at"])
    return len(keys), len(keys) == AT_ONCE
