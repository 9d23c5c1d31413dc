"""How many items may be begun now: samples first, then no more under way than one batch, and none too fast."""

from __future__ import annotations

from datetime import datetime, timedelta

from orchestrator.models import BulkOperation, BulkStatus

LEAST_PAUSE, LONGEST_PAUSE = timedelta(seconds=0.1), timedelta(seconds=5)
"""Between two looks at what is under way: the longer nothing has come of it, the longer."""


def room(operation: BulkOperation) -> int:
    """How many items may be begun beside those that are under way.

    A sample is begun when what came of the one before it is known. What was skipped or refused is no part of a sample:
    it says nothing of those that are left.
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


def due(operation: BulkOperation, now: datetime) -> int | None:
    """How many items the rate lets begin now; None for any number. No more than those of a second are saved up."""
    if operation.rate is None:
        return None
    if operation.paced_at is None:
        return 1
    saved = (now - operation.paced_at).total_seconds() * operation.rate
    return int(min(saved, max(operation.rate, 1.0)))


def paced(operation: BulkOperation, now: datetime, number: int) -> datetime | None:
    """The moment from which the rate counts after a number of items were begun; None without a rate."""
    if operation.rate is None:
        return None
    one = timedelta(seconds=1 / operation.rate)
    earliest = now - max(timedelta(seconds=1), one)
    since = operation.paced_at or now - one
    return max(since, earliest) + number * one


def stops(operation: BulkOperation) -> bool:
    """Whether more have failed again than may, since it was begun or resumed."""
    if operation.stop_above is None:
        return False
    failed = operation.failed - operation.failed_before
    done = operation.done - operation.done_before
    return failed * 100 > operation.stop_above * (failed + done)


def next_look(
    operation: BulkOperation, now: datetime, delayed: bool
) -> datetime | None:
    """When it wants a worker again; None when nothing of it is left to do.

    Args:
        operation: as it is now.
        now: the database's time.
        delayed: whether all business keys that wait are under way.
    """
    moments = []
    if operation.tried:
        quiet = (now - operation.changed_at) / 4
        moments.append(now + min(max(quiet, LEAST_PAUSE), LONGEST_PAUSE))
    if operation.status == BulkStatus.GATHERING:
        moments.append(now)
    waits = operation.status == BulkStatus.RUNNING and operation.waiting
    if waits and room(operation) and not delayed:
        moments.append(_rated(operation, now))
    return min(moments, default=None)


def _rated(operation: BulkOperation, now: datetime) -> datetime:
    if operation.rate is None or operation.paced_at is None:
        return now
    return max(now, operation.paced_at + timedelta(seconds=1 / operation.rate))
