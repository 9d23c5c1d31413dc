"""Pause, resume and cancel a bulk operation.

An action here only changes the row of the operation. Workers gather and process its items, in `bulk.slices`.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.announcements import announce_bulk
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import (
    LockedOperation,
    Operation,
    Press,
    lock_row,
)
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.tables import bulk_operations
from orchestrator.exceptions import PermissionMissing, StaleRevision
from orchestrator.models import BulkOperation, BulkStatus
from orchestrator.models.bulk_operation import GOING_ON, HALTED
from orchestrator.queue import wake_queue_after_commit
from orchestrator.text import Text


class BulkControl(Operation):
    """The base of actions on bulk operations; one permission covers all of them."""

    model = BulkOperation
    may = _("Can act on many at once")
    by_definition = True
    permitted_as = "run_bulkoperation"

    def forbidden_on(self, user: Any, operation: BulkOperation) -> str:
        """Return why a user may not request it for an operation: it needs the permission for all its definitions."""
        return self.forbidden(user, *(operation.definitions or ()))

    def why_not(self, operation: BulkOperation) -> str:
        """Return why it is not possible now; "" if it is."""
        return ""

    def refusal(self, user: Any, operation: BulkOperation) -> str:
        """Return why a user cannot request it now; "" if they can."""
        return self.forbidden_on(user, operation) or self.why_not(operation)


class ExistingBulkControl(BulkControl, LockedOperation):
    """The base of actions on an existing operation."""

    named_by = "bulk_id"
    statuses: ClassVar[tuple[BulkStatus, ...]]
    """The statuses that allow it."""

    def why_not(self, operation: BulkOperation) -> str:
        """Return why it is not possible now; "" if it is."""
        if operation.status in self.statuses:
            return ""
        status, by, who = operation.detail.partition(" by ")
        if by and status == operation.status:
            return Text("This operation is %(cause)s by %(who)s", status, who)
        return Text("This operation is %(cause)s", operation.status)

    def _lock(
        self, key: UUID, request: ActionRequest, *given: Any
    ) -> tuple[Press, BulkOperation]:
        missing = Text("there is no bulk operation %(key)s", key)
        operation, now = lock_row(bulk_operations, key, missing)
        PermissionMissing.raise_for(self.forbidden_on(request.actor, operation))
        StaleRevision.raise_for(self.why_not(operation))
        return Press(request, None, now), operation

    def _state(self, row: BulkOperation) -> dict[str, Any]:
        return {"status": str(row.status)}

    def _do(self, press: Press, row: BulkOperation, *given: Any) -> dict[str, Any]:
        self.effect(press, row)
        row.revision += 1
        row.changed_at = press.now
        row.save()
        announce_bulk(row)
        return {"bulk_id": row.pk, "after": self._state(row)}

    @abstractmethod
    def effect(self, press: Press, operation: BulkOperation) -> None:
        """Change a locked operation; the caller saves it."""


class PauseBulk(ExistingBulkControl):
    """Pauses an operation: workers begin no further items; items under way continue."""

    name = "pause_bulk"
    label = _("Pause")
    done = _("Paused.")
    text = _("Nothing more is begun. What is under way goes on, and is looked at.")
    icon = "paused"
    asks_reason = False
    statuses = GOING_ON

    def effect(self, press: Press, operation: BulkOperation) -> None:
        operation.status = BulkStatus.PAUSED
        operation.say(Text("paused by %(who)s", press.request.actor_name))


class ResumeBulk(ExistingBulkControl):
    """Resumes an operation, which counts failures anew."""

    name = "resume_bulk"
    label = _("Resume")
    done = _("It goes on.")
    text = _("Goes on where it stands. How many fail is counted anew from here.")
    icon = "running"
    tone = "primary"
    asks_reason = False
    statuses = HALTED

    def effect(self, press: Press, operation: BulkOperation) -> None:
        gathered = operation.frozen_at is not None
        operation.status = BulkStatus.RUNNING if gathered else BulkStatus.GATHERING
        operation.detail = ""
        operation.done_before = operation.done
        operation.failed_before = operation.failed
        operation.paced_at = None
        wake_bulk(operation, press.now)


class CancelBulk(ExistingBulkControl):
    """Cancels an operation: workers never begin its waiting items."""

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

    def effect(self, press: Press, operation: BulkOperation) -> None:
        operation.status = BulkStatus.CANCELLED
        operation.say(Text("cancelled by %(who)s", press.request.actor_name))
        operation.finished_at = press.now if not operation.tried else None
        if not operation.tried and not operation.owner:
            operation.wake_at = None


def wake_bulk(operation: BulkOperation, now: datetime) -> None:
    """Make the operation due. A worker that has claimed the operation sees the change after its slice."""
    if not operation.owner:
        operation.wake_at = now
    wake_queue_after_commit(operation.queue)


pause_bulk = register(PauseBulk())
resume_bulk = register(ResumeBulk())
cancel_bulk = register(CancelBulk())
