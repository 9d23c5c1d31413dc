"""Removing the items of bulk operations that ended long ago, some at a time.

The operations stay, with their numbers: the rows of the audit name them, and never change.
"""

from __future__ import annotations

import time
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from orchestrator.engine.sql.batch import database_now
from orchestrator.models import BulkItem, BulkOperation

AT_ONCE = 1_000
"""Items that one transaction removes."""


def prunable_operations(ended_before: datetime) -> QuerySet[BulkOperation]:
    """Return the operations with items that ended before a moment."""
    items = BulkItem.objects.filter(operation=OuterRef("pk"))
    ended = BulkOperation.objects.filter(finished_at__lt=ended_before, tried=0)
    return ended.filter(Exists(items))


def prune_items(ended_before: datetime, rest: float) -> int:
    """Remove the items of all operations that ended before a moment. Return how many there were.

    Args:
        ended_before: that moment.
        rest: how many times as long as it has worked this function pauses.

    Raises:
        DatabaseError: the database refused for now.
    """
    removed = 0
    found = prunable_operations(ended_before).order_by("pk")
    for key in list(found.values_list("pk", flat=True)):
        more = True
        while more:
            begun = time.monotonic()
            number, more = _some(key)
            removed += number
            time.sleep((time.monotonic() - begun) * rest)
    return removed


def _some(key: UUID) -> tuple[int, bool]:
    """Remove some items of an operation. Return how many, and whether there are more."""
    with transaction.atomic():
        rows = BulkOperation.objects.filter(pk=key)
        operation = rows.select_for_update(skip_locked=True).first()
        if operation is None:  # another run is at it
            return 0, False
        items = BulkItem.objects.filter(operation=operation).order_by("pk")
        keys = list(items.values_list("pk", flat=True)[:AT_ONCE])
        BulkItem.objects.filter(pk__in=keys)._raw_delete("default")
        if operation.items_removed_at is None:  # its numbers are now the only ones
            operation.items_removed_at = database_now()
            operation.save(update_fields=["items_removed_at"])
    return len(keys), len(keys) == AT_ONCE
