"""The request for one item; its key is the same when it is repeated."""

from __future__ import annotations

from typing import Any
from uuid import uuid5

from orchestrator.engine.operations import ActionRequest
from orchestrator.models import BulkItem, BulkOperation


def request_of(operation: BulkOperation, item: BulkItem, actor: Any) -> ActionRequest:
    """The request for one item."""
    return ActionRequest(
        actor=actor,
        key=uuid5(operation.key, str(item.target)),
        reason=operation.reason,
        expected_revision=item.revision if item.process_id else None,
        address=operation.address,
        bulk=operation.pk,
    )
