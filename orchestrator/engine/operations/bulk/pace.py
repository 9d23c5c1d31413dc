"""How many items a slice may begin: samples first, then as many as fit into a batch, at the rate of the operation."""

from __future__ import annotations

from datetime import datetime, timedelta

from orchestrator.models import BulkOperation, BulkStatus

LEAST_PAUSE, LONGEST_PAUSE = timedelta(seconds=0.1), timedelta(seconds=5)
"""Between two reads of the outcomes; the pause grows while no outcome is new."""


def batch_allowance(operation: BulkOperation) -> int:
    """Return how many items may begin beside those under way.

    A sample begins when the outcomes of the sample before it are known. Skipped and refused items are in no sample:
    they tell nothing about the others.
    """
    begun = operation.done + operation.failed + operation.tried
    limit = 0
    for size in operation.samples:
        limit, before = limit + size, limit
        if begun < limit:
            return 0 if begun == before and operation.tried else limit - begun
    if begun == limit and operation.tried:
        return 0
    return max(0, operation.batch - operation.tried)


def rate_allowance(operation: BulkOperation, now: datetime) -> int | None:
    """Return how many items the rate allows now; None for any number. At most the items of one second accumulate."""
    if operation.rate is None:
        return None
    if operation.paced_at is None:
        return 1
    saved = (now - operation.paced_at).total_seconds() * operation.rate
    return int(min(saved, max(operation.rate, 1.0)))


def rate_start(operation: BulkOperation, now: datetime, number: int) -> datetime | None:
    """Return the moment from which the rate counts after a number of items have begun; None without a rate."""
    if operation.rate is None:
        return None
    one = timedelta(seconds=1 / operation.rate)
    earliest = now - max(timedelta(seconds=1), one)
    since = operation.paced_at or now - one
    return max(since, earliest) + number * one


def must_stop(operation: BulkOperation) -> bool:
    """Return whether too many items have failed again since the operation began or was resumed."""
    if operation.stop_above is None:
        return False
    failed = operation.failed - operation.failed_before
    done = operation.done - operation.done_before
    return failed * 100 > operation.stop_above * (failed + done)


def next_wake(
    operation: BulkOperation, now: datetime, delayed: bool
) -> datetime | None:
    """Return when the operation needs a worker again; None when it has no work left.

    Args:
        operation: with its present numbers.
        now: the database's time.
        delayed: whether each waiting item has a business key that is under way.
    """
    moments = []
    if operation.tried:
        quiet = (now - operation.changed_at) / 4
        moments.append(now + min(max(quiet, LEAST_PAUSE), LONGEST_PAUSE))
    if operation.status == BulkStatus.GATHERING:
        moments.append(now)
    waits = operation.status == BulkStatus.RUNNING and operation.waiting
    if waits and batch_allowance(operation) and not delayed:
        moments.append(_rate_wake(operation, now))
    return min(moments, default=None)


def _rate_wake(operation: BulkOperation, now: datetime) -> datetime:
    if operation.rate is None or operation.paced_at is None:
        return now
    return max(now, operation.paced_at + timedelta(seconds=1 / operation.rate))
