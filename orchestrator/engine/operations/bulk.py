"""Bulk operations: one action on many, begun, paused, resumed, cancelled, and once more for what has failed again.

What is pressed here only says what is to be done. Workers gather the items and do it, in `engine.bulk`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.announcements import announce_bulk
from orchestrator.engine.change.incidents import storable
from orchestrator.engine.operations.audit import ActionRequest, audited
from orchestrator.engine.operations.base import Operation
from orchestrator.engine.operations.registry import OPERATIONS, register
from orchestrator.engine.operations.selection import SELECTIONS, failed_items
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.storage.tables import bulk_operations
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.models import BulkOperation, BulkStatus, OperatorAction
from orchestrator.models.bulk_operation import GOING_ON, HALTED
from orchestrator.queue import ring_after_commit

MOST_BATCH = 1_000
"""Items that may be under way at once: each look at them takes them all in."""

MOST_RATE = 1_000.0

MOST_SAMPLES = 5


@dataclass(frozen=True)
class Pace:
    """How fast a bulk operation goes on.

    Args:
        samples: how many are tried first, and then, and so on, each time until what came of them is known.
        batch: how many are under way at once after that.
        rate: how many are begun in a second at most; None for as many as go.
        per_key: how many with the same correlation key are under way at once; None for any number.
        stop_above: the percentage of failures above which it stops by itself; None for never.
    """

    samples: tuple[int, ...] = (1, 10)
    batch: int = 100
    rate: float | None = None
    per_key: int | None = None
    stop_above: float | None = 5.0

    def check(self) -> None:
        """Refuses what makes no sense.

        Raises:
            OperationRefused: one of the numbers is out of bounds.
        """
        sizes = all(0 < size <= MOST_BATCH for size in self.samples)
        if len(self.samples) > MOST_SAMPLES or not sizes:
            raise OperationRefused(
                f"give at most {MOST_SAMPLES} samples of 1 to {MOST_BATCH}"
            )
        if not 0 < self.batch <= MOST_BATCH:
            raise OperationRefused(f"let 1 to {MOST_BATCH} be under way at once")
        if self.rate is not None and not 0.01 <= self.rate <= MOST_RATE:
            raise OperationRefused(f"begin 0.01 to {MOST_RATE:g} a second")
        if self.per_key is not None and not 0 < self.per_key <= MOST_BATCH:
            raise OperationRefused(
                f"let 1 to {MOST_BATCH} with one business key be under way at once"
            )
        if self.stop_above is not None and not 0 <= self.stop_above < 100:
            raise OperationRefused("stop at a percentage from 0 to below 100")


@dataclass(frozen=True)
class Wanted:
    """What a person wants done, and to what.

    Args:
        action: the name of the action.
        selection: the kind of selection.
        about: what is selected.
        shown: how many the page has shown.
        shown_at: when it did; what matches only since then is left alone.
        exact: whether it has counted them all; if not, nothing begins before a person has seen how many there are.
        given: what the action is told besides.
        pace: how fast.
    """

    action: str
    selection: str
    about: Mapping[str, Any]
    shown: int
    shown_at: datetime
    exact: bool = True
    given: Sequence[Any] = ()
    pace: Pace = field(default_factory=Pace)


class BulkControl(Operation):
    """What is done with bulk operations; one permission is for all of it."""

    model = BulkOperation
    may = _("Can act on many at once")

    @property
    def codename(self) -> str:
        return "run_bulkoperation"


class StartBulk(BulkControl):
    """Begins a bulk operation: what was shown is frozen first, and then done to one after the other."""

    name = "start_bulk"
    label = _("Act on many")
    done = _("Begun.")

    def __call__(self, wanted: Wanted, *, request: ActionRequest) -> BulkOperation:
        """Stores what is wanted, once for each key.

        Raises:
            OperationRefused: it would be on everything or on nothing, or the operator may not.
        """
        return _created(self, wanted, request)


class ExistingBulkControl(BulkControl):
    """What is done with one that there is."""

    statuses: ClassVar[tuple[BulkStatus, ...]]
    """In which it can be done."""

    def why_not(self, operation: BulkOperation) -> str:
        """Why it cannot be done now; "" if it can."""
        if operation.status in self.statuses:
            return ""
        return f"This operation is {BulkStatus(operation.status).value}"

    def refusal(self, user: Any, operation: BulkOperation) -> str:
        """Why a user cannot do it now; "" if they can."""
        return self.forbidden(user) or self.why_not(operation)

    def __call__(self, pk: UUID, *, request: ActionRequest) -> OperatorAction:
        """Carries it out.

        Raises:
            OperationRefused: it cannot be done, the page is stale, or the operator may not.
        """
        self._check_request(request)

        def carry_out() -> dict[str, Any]:
            self._check_permission(request)
            operation, now = bulk_operations.lock(pk)
            if operation is None:
                raise OperationRefused(f"there is no bulk operation {pk}")
            if reason := self.why_not(operation):
                raise StaleRevision(reason)
            before = {"status": str(operation.status)}
            self.effect(operation, now, request)
            operation.revision += 1
            operation.changed_at = now
            operation.save()
            announce_bulk(operation)
            after = {"status": str(operation.status)}
            return {"bulk_id": pk, "at": now, "before": before, "after": after}

        return audited(self.name, request, carry_out, {"bulk_id": pk})

    @abstractmethod
    def effect(
        self, operation: BulkOperation, now: datetime, request: ActionRequest
    ) -> None:
        """Does it to a locked operation, which is saved then."""


class PauseBulk(ExistingBulkControl):
    """Begins no more of its items; what is under way goes on."""

    name = "pause_bulk"
    label = _("Pause")
    done = _("Paused.")
    text = _("Nothing more is begun. What is under way goes on, and is looked at.")
    icon = "paused"
    asks_reason = False
    statuses = GOING_ON

    def effect(
        self, operation: BulkOperation, now: datetime, request: ActionRequest
    ) -> None:
        operation.status = BulkStatus.PAUSED
        operation.detail = f"paused by {str(request.actor)[:150]}"


class ResumeBulk(ExistingBulkControl):
    """Goes on; how many may fail is counted anew."""

    name = "resume_bulk"
    label = _("Resume")
    done = _("It goes on.")
    text = _("Goes on where it stands. How many fail is counted anew from here.")
    icon = "running"
    tone = "primary"
    asks_reason = False
    statuses = HALTED

    def effect(
        self, operation: BulkOperation, now: datetime, request: ActionRequest
    ) -> None:
        gathered = operation.frozen_at is not None
        operation.status = BulkStatus.RUNNING if gathered else BulkStatus.GATHERING
        operation.detail = ""
        operation.done_before = operation.done
        operation.failed_before = operation.failed
        operation.paced_at = None
        _wake(operation, now)


class CancelBulk(ExistingBulkControl):
    """Ends it; what it was not done to yet is left alone for good."""

    name = "cancel_bulk"
    label = _("Cancel the rest")
    done = _("Cancelled.")
    text = _(
        "Nothing more is begun, for good. What is under way goes on; what was done stays done."
    )
    icon = "cancelled"
    tone = "danger"
    asks_reason = False
    statuses = (*GOING_ON, *HALTED)

    def effect(
        self, operation: BulkOperation, now: datetime, request: ActionRequest
    ) -> None:
        operation.status = BulkStatus.CANCELLED
        operation.detail = f"cancelled by {str(request.actor)[:150]}"
        operation.finished_at = now if not operation.tried else None
        if not operation.tried and not operation.owner:
            operation.wake_at = None


class RepeatBulk(BulkControl):
    """The same action once more, on what has failed again: an operation of its own."""

    name = "repeat_bulk"
    label = _("Once more for those that failed")
    done = _("Begun.")
    text = _("Begins another operation on those that failed again, at the same pace.")
    icon = "retrying"

    def refusal(self, user: Any, operation: BulkOperation) -> str:
        """Why a user cannot do it now; "" if they can."""
        return self.forbidden(user) or self.why_not(operation)

    def why_not(self, operation: BulkOperation) -> str:
        """Why it cannot be done now; "" if it can."""
        if operation.status in (*GOING_ON, *HALTED):
            return "Wait for the end of this operation, or cancel the rest"
        return "" if operation.failed else "None of it has failed again"

    def __call__(self, pk: UUID, *, request: ActionRequest) -> BulkOperation:
        """Begins it.

        Raises:
            OperationRefused: nothing has failed again, it has not ended, or the operator may not.
        """
        before = BulkOperation.objects.filter(pk=pk).first()
        if before is None:
            raise OperationRefused(f"there is no bulk operation {pk}")
        wanted = Wanted(
            before.action,
            failed_items.name,
            {"operation": str(pk)},
            before.failed,
            database_now(),
            given=before.given,
            pace=pace_of(before),
        )
        return _created(self, wanted, request, before)


def pace_of(operation: BulkOperation) -> Pace:
    """The pace of an operation."""
    return Pace(
        tuple(operation.samples),
        operation.batch,
        operation.rate,
        operation.per_key,
        operation.stop_above,
    )


def moment_shown() -> datetime:
    """The moment of a page that shows what is to be frozen, by the database's clock."""
    return database_now()


def in_bulk() -> dict[str, Operation]:
    """The actions that can be done to many, by name."""
    return {name: one for name, one in OPERATIONS.items() if one.in_bulk}


def _created(
    control: StartBulk | RepeatBulk,
    wanted: Wanted,
    request: ActionRequest,
    before: BulkOperation | None = None,
) -> BulkOperation:
    control._check_request(request)

    def carry_out() -> dict[str, Any]:
        control._check_permission(request)
        if before is not None and (reason := repeat_bulk.why_not(before)):
            raise OperationRefused(reason)
        _check(wanted, request)
        now = database_now()
        operation = _new(wanted, request, now, before)
        operation.save(force_insert=True)
        _wake(operation, now)
        announce_bulk(operation)
        after = {"action": wanted.action, "about": wanted.about, "shown": wanted.shown}
        return {"bulk_id": operation.pk, "at": now, "after": after}

    audited(control.name, request, carry_out, {})
    return BulkOperation.objects.get(key=request.key)


def _check(wanted: Wanted, request: ActionRequest) -> None:
    """Refuses what is on everything, on nothing, or cannot be done to many.

    Raises:
        OperationRefused: with what to do about it.
    """
    operation, selection = in_bulk().get(wanted.action), SELECTIONS[wanted.selection]
    if operation is None or selection.model not in (None, operation.model):
        raise OperationRefused(f"{wanted.action} cannot be done to many at once")
    operation._check_request(request)
    operation._check_permission(request)
    wanted.pace.check()
    if not selection.narrows(wanted.about):
        raise OperationRefused(
            "Say which first: an operation on everything is not begun"
        )
    first = selection.chunk(wanted.about, wanted.shown_at, "", 1)
    if not wanted.shown or not (first.found or first.after):
        raise OperationRefused("Nothing matches: look at the list again")


def _new(
    wanted: Wanted, request: ActionRequest, now: datetime, before: BulkOperation | None
) -> BulkOperation:
    return BulkOperation(
        key=request.key,
        action=wanted.action,
        given=list(wanted.given),
        actor=request.actor,
        actor_name=str(request.actor)[:150],
        address=request.address,
        reason=storable(request.reason),
        again_of=before,
        selection=wanted.selection,
        about=dict(wanted.about),
        shown=wanted.shown,
        exact=wanted.exact,
        shown_at=min(wanted.shown_at, now),
        samples=list(wanted.pace.samples),
        batch=wanted.pace.batch,
        rate=wanted.pace.rate,
        per_key=wanted.pace.per_key,
        stop_above=wanted.pace.stop_above,
        wake_at=now,
        created_at=now,
        changed_at=now,
    )


def _wake(operation: BulkOperation, now: datetime) -> None:
    """Has a worker look at it at once, unless one does just now: that one sees it when its slice is over."""
    if not operation.owner:
        operation.wake_at = now
    ring_after_commit(operation.queue)


start_bulk = register(StartBulk())
pause_bulk = register(PauseBulk())
resume_bulk = register(ResumeBulk())
cancel_bulk = register(CancelBulk())
repeat_bulk = register(RepeatBulk())
