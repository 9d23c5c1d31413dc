"""One slice of a bulk operation: look at what is under way, begin what may begin, store what came of it.

The action on each item is committed by itself; verdicts and numbers follow together at the end of the slice, if the
operation is still this worker's. A worker that is killed in between has done what the audit says: the next one presses
the same items again under the same keys, is told the same, and stores it.
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

from orchestrator.engine.bulk import pace
from orchestrator.engine.bulk.gathering import gather
from orchestrator.engine.bulk.pressing import actor_of, press, refuse_forbidden
from orchestrator.engine.bulk.together import MOST, press_together
from orchestrator.engine.change.announcements import announce_bulk
from orchestrator.engine.invariants.bulk import NUMBERS
from orchestrator.engine.operations import OPERATIONS, SELECTIONS, Tried
from orchestrator.engine.storage.alike import together
from orchestrator.engine.storage.batch import Statement, chunks, database_now, send
from orchestrator.engine.storage.tables import bulk_items, bulk_operations
from orchestrator.models import BulkItem, BulkOperation, BulkStatus, BulkVerdict
from orchestrator.models.bulk_operation import GOING_ON
from orchestrator.text import Text

FORGOTTEN = timedelta(seconds=60)
"""When an operation is looked at again whose selection this worker's code does not know."""

LOOKED_AT = 1_000
"""Items that wait for their turn and are looked at to find some whose business keys are free."""

READ = 500
"""Items that are read to be begun in one slice."""

DEATHS = 5
"""Workers that may be lost in a row. Then the operation stops, and leaves out the item with which they were lost."""

ENDS_ITS_WORKERS = Text(
    "the worker died or was killed in each of the last %(number)s attempts. See the workers' log for why, then resume "
    "it, or cancel the rest",
)

LEFT_OUT = Text(
    "not begun again: in each of the last %(number)s attempts the worker died or was killed, the last time with this "
    "one",
)


def run(
    operation: BulkOperation, seconds: float, stop: Callable[[], bool] = lambda: False
) -> int:
    """Runs a slice of a claimed operation, and gives it back with the moment at which it wants the next one.

    Args:
        operation: as it was claimed.
        seconds: for how long items are begun.
        stop: asked between items.

    Returns:
        How many items were begun.

    Raises:
        DatabaseError: it refused for now; others take the operation over when the lease has run out.
    """
    mine = Slice(operation, seconds, stop)
    mine.run()
    return mine.begun


class Slice:
    """One slice, of the operation as it was claimed."""

    def __init__(
        self, operation: BulkOperation, seconds: float, stop: Callable[[], bool]
    ) -> None:
        self.operation = operation
        self.seconds = seconds
        self.ends = time.monotonic() + seconds
        self.stop = stop
        self.now = database_now()
        self.deaths = operation.attempt - operation.revision - 1
        """Workers in a row that were lost, each in the middle of a slice: a claim raises the attempt, and a slice that
        is stored the revision, so the one is ahead by what was begun since."""
        self.changed: list[BulkItem] = []
        """Items with their new verdicts."""
        self.moved: Counter[str] = Counter()
        """By how much each number changes."""
        self.begun = 0
        self.delayed = False
        """Whether all business keys that wait are under way."""
        self.halted = ""
        """Why it cannot go on."""

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
        would_stop = pace.stops(_after(self.operation, self.moved))
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
                    gather(operation, self.now)
                self.moved.clear()
                goes_on = operation.status == BulkStatus.GATHERING and known
                if not goes_on or self._over():
                    self._give_back(operation, None if known else FORGOTTEN)
                    return
                operation.save()

    # Looking

    def _begins_first(self) -> bool:
        """Whether to begin items first: there is room for many more, and looking reads all that are under way."""
        one = self.operation
        if one.status != BulkStatus.RUNNING or not one.waiting:
            return False
        if one.rate is not None or one.per_key is not None:
            return False
        return pace.room(one) * 2 > one.batch

    def _look(self) -> None:
        """Stores the verdicts of items whose outcomes are known by now."""
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
                return  # what is known is stored; the database is asked again with the next slice

    def _press_some(self, items: Sequence[BulkItem], actor: Any) -> None:
        """Does it to some: together where that can be, to the others one by one, as to all after a worker was lost.

        Raises:
            DatabaseError: it refused for now; those without a verdict keep their turn.
        """
        permitted = refuse_forbidden(self.operation, items, actor)
        careful = self.deaths > 0
        left = (
            permitted if careful else press_together(self.operation, permitted, actor)
        )
        for item in items:
            if item.verdict != BulkVerdict.WAITING:
                self._begun(item)
        for item in left:
            if self._over():
                return
            if careful:
                self._mark(item)
            press(self.operation, item, actor)
            self._begun(item)

    def _mark(self, item: BulkItem) -> None:
        """Stores that the item is begun, so that a lost worker leaves a trace of it."""
        send([bulk_items.update({"tried_at": self.now}, {"id": item.pk})])

    def _leave_out(self) -> None:
        """Refuses the item with which the workers were lost; a resumed operation continues with the next item."""
        waiting = self.operation.items.filter(verdict=BulkVerdict.WAITING)
        begun = waiting.filter(tried_at__isnull=False)
        if (item := begun.order_by("tried_at", "pk").last()) is not None:
            item.verdict = BulkVerdict.REFUSED
            item.say(LEFT_OUT.filled(self.deaths))
            item.at = self.now
            self._note(item)

    def _begun(self, item: BulkItem) -> None:
        item.at = None if item.verdict == BulkVerdict.TRIED else self.now
        self.begun += 1
        self._note(item)

    def _next(self) -> list[BulkItem]:
        """The next ones that the pace allows, in the order in which they were frozen."""
        operation = _after(self.operation, self.moved)
        allowed = pace.due(operation, self.now)
        number = pace.room(operation)
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
        """The operation, locked, if it is still this worker's."""
        operation, self.now = bulk_operations.lock(self.operation.pk)
        claimed = (self.operation.owner, self.operation.attempt)
        if operation is None or (operation.owner, operation.attempt) != claimed:
            return None
        return operation

    def _store(self, operation: BulkOperation) -> None:
        send(together([_stored(item) for item in self.changed]))
        _add(operation, self.moved)
        if self.begun:
            operation.paced_at = pace.paced(operation, self.now, self.begun)
        if self.halted and operation.status in GOING_ON:
            operation.status = BulkStatus.STOPPED
            operation.say(self.halted)
        elif operation.status == BulkStatus.RUNNING:
            _end_or_stop(operation)
        if operation.status not in GOING_ON and not operation.tried:
            ended = operation.status in (BulkStatus.COMPLETED, BulkStatus.CANCELLED)
            if ended and operation.finished_at is None:
                operation.finished_at = self.now
        self._give_back(operation)

    def _give_back(
        self, operation: BulkOperation, pause: timedelta | None = None
    ) -> None:
        if self.moved or operation.status != self.operation.status:
            operation.changed_at = self.now
        wakes: datetime | None = pace.next_look(operation, self.now, self.delayed)
        operation.wake_at = wakes if pause is None else self.now + pause
        operation.owner = ""
        operation.revision += 1
        operation.attempt = operation.revision  # what it is ahead next are deaths
        operation.save()
        announce_bulk(operation)


def _stored(item: BulkItem) -> Statement:
    """The writing of an item's verdict."""
    values = {
        "verdict": str(item.verdict),
        "detail": item.detail,
        "text": item.text,
        "tried_at": item.tried_at,
        "at": item.at,
    }
    return bulk_items.update(values, {"id": item.pk})


def _end_or_stop(operation: BulkOperation) -> None:
    if pace.stops(operation):
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
    """The operation with its numbers as they will be."""
    found = copy(operation)
    _add(found, moved)
    return found
