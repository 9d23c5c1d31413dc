"""The request for one item; a repetition has the same key."""

from __future__ import annotations

from typing import Any
from uuid import uuid5

from orchestrator.engine.operations import ActionRequest
from orchestrator.models import BulkItem, BulkOperation


def item_request(operation: BulkOperation, item: BulkItem, actor: Any) -> ActionRequest:
    """Return the request for one item."""
    return ActionRequest(
        actor=actor,
        key=uuid5(operation.key, str(item.target)),
        reason=operation.reason,
        expected_revision=item.revision if item.process_id else None,
        address=operation.address,
        bulk=operation.pk,
    )
