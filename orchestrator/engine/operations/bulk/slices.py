"""One slice of a bulk operation: read the outcomes of items under way, begin further items, store the verdicts.

The action on each item has a commit of its own; the slice stores verdicts and numbers together at its end, if the
worker still holds the operation. After a worker was killed in between, the audit has its actions: the next worker
presses the same items under the same keys, gets the same answers, and stores them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime, timedelta
from typing import Any

from django.db import Error as DatabaseError
from django.db import transaction

from orchestrator.engine.change.announcements import announce_bulk
from orchestrator.engine.invariants.bulk_operations import NUMBERS
from orchestrator.engine.operations import OPERATIONS, SELECTIONS, Tried
from orchestrator.engine.operations.bulk import pace
from orchestrator.engine.operations.bulk.gathering import gather_items
from orchestrator.engine.operations.bulk.group_press import MOST, press_together
from orchestrator.engine.operations.bulk.single_press import (
    actor_of,
    press_item,
    refuse_forbidden,
)
from orchestrator.engine.sql.batch import Statement, chunks, database_now, send
from orchestrator.engine.sql.group_commit import merge_alike
from orchestrator.engine.sql.tables import bulk_items, bulk_operations
from orchestrator.models import BulkItem, BulkOperation, BulkStatus, BulkVerdict
from orchestrator.models.bulk_operation import GOING_ON
from orchestrator.text import Text

FORGOTTEN = timedelta(seconds=60)
"""The pause of an operation whose selection this worker's code does not know."""

LOOKED_AT = 1_000
"""Waiting items that are searched for free business keys."""

READ = 500
"""Items that one slice reads to begin them."""

DEATHS = 5
"""After this many lost workers in a row the operation stops, and leaves out the item with which they were lost."""

ENDS_ITS_WORKERS = Text(
    "the worker died or was killed in each of the last %(number)s attempts. See the workers' log for why, then resume "
    "it, or cancel the rest"
)

LEFT_OUT = Text(
    "not begun again: in each of the last %(number)s attempts the worker died or was killed, the last time with this "
    "one"
)


def run_slice(
    operation: BulkOperation, seconds: float, stop: Callable[[], bool] = lambda: False
) -> int:
    """Run a slice of a claimed operation, and release the operation with the moment of its next slice.

    Args:
        operation: as it was claimed.
        seconds: the time in which the slice begins items.
        stop: called between items; returns whether the slice is to end.

    Returns:
        The number of items that the slice has begun.

    Raises:
        DatabaseError: the database refused for now; other workers claim the operation when its lease has expired.
    """
    mine = Slice(operation, seconds, stop)
    mine.run()
    return mine.begun


class Slice:
    """One slice of a claimed operation."""

    def __init__(
        self, operation: BulkOperation, seconds: float, stop: Callable[[], bool]
    ) -> None:
        self.operation = operation
        self.seconds = seconds
        self.ends = time.monotonic() + seconds
        self.stop = stop
        self.now = database_now()
        self.deaths = operation.attempt - operation.revision - 1
        """Workers in a row that were lost, each in the middle of a slice. A claim raises the attempt, a stored slice
        the revision, so the attempt is ahead by the slices that were not stored."""
        self.changed: list[BulkItem] = []
        """Items with their new verdicts."""
        self.moved: Counter[str] = Counter()
        """The change of each number."""
        self.begun = 0
        self.delayed = False
        """Whether each waiting item has a business key that is under way."""
        self.halted = ""
        """Why the operation cannot continue."""

    def run(self) -> None:
        if self.deaths >= DEATHS:
            self.halted = ENDS_ITS_WORKERS.filled(self.deaths)
            self._leave_out()
        elif self.operation.status == BulkStatus.GATHERING:
            self._gather()
            return
        else:
            self._work()
        with transaction.atomic():
            if (operation := self._mine()) is not None:
                self._store(operation)

    def _work(self) -> None:
        if not self._begins_first():
            self._look()
            self.ends = time.monotonic() + self.seconds
        would_stop = pace.must_stop(_after(self.operation, self.moved))
        if self.operation.status == BulkStatus.RUNNING and not would_stop:
            self._press()

    def _over(self) -> bool:
        return time.monotonic() >= self.ends or self.stop()

    def _gather(self) -> None:
        while True:
            with transaction.atomic():
                operation = self._mine()
                if operation is None:
                    return
                known = operation.selection in SELECTIONS
                if known and operation.status == BulkStatus.GATHERING:
                    gather_items(operation, self.now)
                self.moved.clear()
                goes_on = operation.status == BulkStatus.GATHERING and known
                if not goes_on or self._over():
                    self._release(operation, None if known else FORGOTTEN)
                    return
                operation.save()

    # Looking

    def _begins_first(self) -> bool:
        """Whether to begin items first: the batch has room for many, and a look reads all items under way."""
        one = self.operation
        if one.status != BulkStatus.RUNNING or not one.waiting:
            return False
        if one.rate is not None or one.per_key is not None:
            return False
        return pace.batch_allowance(one) * 2 > one.batch

    def _look(self) -> None:
        """Reads the outcomes of the items under way, and notes their verdicts."""
        items = list(self.operation.items.filter(verdict=BulkVerdict.TRIED))
        action = OPERATIONS.get(self.operation.action)
        if not items or action is None:
            return
        tried = [
            Tried(item.target, item.tried_at or self.now, item.revision or 0)
            for item in items
        ]
        outcomes = action.outcomes(tried)
        for item in items:
            outcome = outcomes.get(item.target, "")
            if outcome is not None:
                item.verdict = BulkVerdict.FAILED if outcome else BulkVerdict.DONE
                item.at = self.now
                item.say(outcome)
                self.moved["tried"] -= 1
                self._note(item)

    def _note(self, item: BulkItem) -> None:
        self.moved[NUMBERS[BulkVerdict(item.verdict)]] += 1
        self.changed.append(item)

    # Pressing

    def _press(self) -> None:
        items = self._next()
        if not items:
            return
        actor, self.halted = actor_of(self.operation)
        if self.halted:
            return
        for some in chunks(items, MOST):
            if self._over():
                return
            try:
                self._press_some(some, actor)
            except DatabaseError:
                if not self.changed:
                    raise
                return  # the known verdicts are stored; the next slice tries the others

    def _press_some(self, items: Sequence[BulkItem], actor: Any) -> None:
        """Presses items: together where the action allows it, else one by one; after a lost worker all one by one.

        Raises:
            DatabaseError: the database refused for now; items without a verdict wait for the next slice.
        """
        permitted = refuse_forbidden(self.operation, items, actor)
        careful = self.deaths > 0
        left = (
            permitted if careful else press_together(self.operation, permitted, actor)
        )
        for item in items:
            if item.verdict != BulkVerdict.WAITING:
                self._note_begun(item)
        for item in left:
            if self._over():
                return
            if careful:
                self._mark(item)
            press_item(self.operation, item, actor)
            self._note_begun(item)

    def _mark(self, item: BulkItem) -> None:
        """Stores the time before the press, so that the item of a lost worker is known."""
        send([bulk_items.update({"tried_at": self.now}, {"id": item.pk})])

    def _leave_out(self) -> None:
        """Refuses the item with which the workers were lost. A resumed operation continues with the next item."""
        waiting = self.operation.items.filter(verdict=BulkVerdict.WAITING)
        begun = waiting.filter(tried_at__isnull=False)
        if (item := begun.order_by("tried_at", "pk").last()) is not None:
            item.verdict = BulkVerdict.REFUSED
            item.say(LEFT_OUT.filled(self.deaths))
            item.at = self.now
            self._note(item)

    def _note_begun(self, item: BulkItem) -> None:
        item.at = None if item.verdict == BulkVerdict.TRIED else self.now
        self.begun += 1
        self._note(item)

    def _next(self) -> list[BulkItem]:
        """The next items that the pace allows, in the order in which they were frozen."""
        operation = _after(self.operation, self.moved)
        allowed = pace.rate_allowance(operation, self.now)
        number = pace.batch_allowance(operation)
        number = min(number, READ if allowed is None else min(allowed, READ))
        waiting = operation.items.filter(verdict=BulkVerdict.WAITING).order_by("pk")
        if operation.per_key is None or not number:
            return list(waiting[:number])
        settled = {item.pk for item in self.changed}
        under_way = operation.items.filter(verdict=BulkVerdict.TRIED).exclude(key="")
        busy = Counter(under_way.exclude(pk__in=settled).values_list("key", flat=True))
        found = list[BulkItem]()
        for item in waiting[:LOOKED_AT]:
            if len(found) == number:
                break
            if not item.key or busy[item.key] < operation.per_key:
                busy[item.key] += 1
                found.append(item)
        self.delayed = not found
        return found

    # Storing

    def _mine(self) -> BulkOperation | None:
        """The operation, locked; None if another worker has claimed it."""
        operation, self.now = bulk_operations.lock(self.operation.pk)
        claimed = (self.operation.owner, self.operation.attempt)
        if operation is None or (operation.owner, operation.attempt) != claimed:
            return None
        return operation

    def _store(self, operation: BulkOperation) -> None:
        send(merge_alike([_verdict_row(item) for item in self.changed]))
        _add(operation, self.moved)
        if self.begun:
            operation.paced_at = pace.rate_start(operation, self.now, self.begun)
        if self.halted and operation.status in GOING_ON:
            operation.status = BulkStatus.STOPPED
            operation.say(self.halted)
        elif operation.status == BulkStatus.RUNNING:
            _end_or_stop(operation)
        if operation.status not in GOING_ON and not operation.tried:
            ended = operation.status in (BulkStatus.COMPLETED, BulkStatus.CANCELLED)
            if ended and operation.finished_at is None:
                operation.finished_at = self.now
        self._release(operation)

    def _release(
        self, operation: BulkOperation, pause: timedelta | None = None
    ) -> None:
        if self.moved or operation.status != self.operation.status:
            operation.changed_at = self.now
        wakes: datetime | None = pace.next_wake(operation, self.now, self.delayed)
        operation.wake_at = wakes if pause is None else self.now + pause
        operation.owner = ""
        operation.revision += 1
        operation.attempt = operation.revision  # the attempts beyond it will be deaths
        operation.save()
        announce_bulk(operation)


def _verdict_row(item: BulkItem) -> Statement:
    """The statement that stores an item's verdict."""
    values = {
        "verdict": str(item.verdict),
        "detail": item.detail,
        "text": item.text,
        "tried_at": item.tried_at,
        "at": item.at,
    }
    return bulk_items.update(values, {"id": item.pk})


def _end_or_stop(operation: BulkOperation) -> None:
    if pace.must_stop(operation):
        failed = operation.failed - operation.failed_before
        of = failed + operation.done - operation.done_before
        operation.status = BulkStatus.STOPPED
        operation.say(
            Text(
                "%(number)s of %(all)s failed again, more than %(most)s percent",
                failed,
                of,
                f"{operation.stop_above:g}",
            )
        )
    elif not operation.waiting and not operation.tried:
        operation.status = BulkStatus.COMPLETED


def _add(operation: BulkOperation, moved: Counter[str]) -> None:
    for name, number in moved.items():
        setattr(operation, name, getattr(operation, name) + number)


def _after(operation: BulkOperation, moved: Counter[str]) -> BulkOperation:
    """A copy of the operation with its numbers after the slice."""
    found = copy(operation)
    _add(found, moved)
    return found
