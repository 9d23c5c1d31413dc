"""Begins bulk operations as the console does, and has the engine of this process work on them."""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db.models import Count

from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import ActionRequest, Pace, Wanted, start_bulk
from orchestrator.engine.operations.bulk import slices
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.tables import bulk_operations
from orchestrator.models import BulkItem, BulkOperation, BulkStatus
from tests.services.patience import wait_for

LATER = timedelta(days=1)
AT_ONCE = Pace(samples=(), batch=1_000, stop_above=None)
"""All of them, whatever becomes of them."""


def asked(actor: Any, key: UUID | None = None, reason: str = "the line is back") -> Any:
    return ActionRequest(actor, key or uuid4(), reason)


def begun(
    actor: User,
    about: dict[str, Any],
    shown: int,
    *,
    action: str = "retry",
    selection: str = "processes",
    pace: Pace = AT_ONCE,
    key: UUID | None = None,
    **more: Any,
) -> BulkOperation:
    """Begin an operation on what a page shows now."""
    more.setdefault("shown_at", database_now())
    wanted = Wanted(action, selection, about, shown, pace=pace, **more)
    return start_bulk(wanted, request=asked(actor, key))


def worked_on(operation: BulkOperation) -> BulkOperation:
    """Run what is ready until the operation goes on no more by itself, and nothing of it is under way."""
    BulkOperation.objects.filter(pk=operation.pk, wake_at__isnull=False).update(
        wake_at=database_now()
    )

    def rests() -> bool:
        drain()
        operation.refresh_from_db()
        return operation.wake_at is None

    wait_for(rests, 5, lambda: (operation.status, operation.tried, operation.waiting))
    return operation


def frozen(operation: BulkOperation) -> BulkOperation:
    """Gather its items without having anything done to them."""
    while BulkOperation.objects.get(pk=operation.pk).status == BulkStatus.GATHERING:
        for item in bulk_operations.claim("default", "gatherer", 1, 10):
            slices.run_slice(item.work, 0)
    operation.refresh_from_db()
    return operation


def slice_of(operation: BulkOperation, owner: str = "one") -> BulkOperation:
    """Run one slice as long as it takes; until the next one nobody else takes the operation."""
    rows = BulkOperation.objects.filter(pk=operation.pk)
    rows.update(wake_at=database_now())
    [claimed] = bulk_operations.claim("default", owner, 1, 10)
    slices.run_slice(claimed.work, float("inf"))
    rows.filter(wake_at__isnull=False).update(wake_at=database_now() + LATER)
    operation.refresh_from_db()
    return operation


def settled(operation: BulkOperation) -> int:
    """How many items have their last verdict."""
    return BulkOperation.objects.get(pk=operation.pk).settled


def verdicts(operation: BulkOperation) -> dict[str, int]:
    """The number of its items with each verdict, as they are stored."""
    rows = BulkItem.objects.filter(operation=operation).order_by()
    return dict(rows.values_list("verdict").annotate(Count("pk")))


def a_moment() -> None:
    """Let the clock of the database go on."""
    time.sleep(0.002)
