"""Freezing the rows of a selection as the items of a bulk operation, a chunk to a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from orchestrator.engine.operations import (
    OPERATIONS,
    SELECTIONS,
    Found,
    definitions_of_each,
)
from orchestrator.models import BulkItem, BulkOperation, BulkStatus, InboxEvent
from orchestrator.models.bulk_operation import GOING_ON
from orchestrator.text import Text

CHUNK = 500
"""Rows of one transaction."""

UNCOUNTED = Text("more than the page could count: look at their number, then resume")
MORE = Text("more than were shown: look at their number, then resume")
NONE_LEFT = Text("nothing matched any more")


def gather_items(operation: BulkOperation, now: datetime) -> None:
    """Freeze the next rows of a locked operation; the caller saves the operation."""
    selection = SELECTIONS[operation.selection]
    chunk = selection.chunk(
        operation.about, operation.shown_at, operation.cursor, CHUNK
    )
    found = _permitted(operation, chunk.found)
    operation.left_out += len(chunk.found) - len(found)
    operation.total += len(_freeze(operation, found))
    operation.cursor = chunk.after
    if not chunk.after:
        operation.frozen_at = now
        _begin(operation, now)


def _permitted(operation: BulkOperation, found: Sequence[Found]) -> Sequence[Found]:
    """The rows of the definitions to which the operation is limited, if it is."""
    if operation.definitions is None:
        return found
    model = OPERATIONS[operation.action].model
    names = definitions_of_each(model, {one.target for one in found})
    return [one for one in found if names.get(one.target) in operation.definitions]


def _freeze(operation: BulkOperation, found: Iterable[Found]) -> list[BulkItem]:
    """Stores the rows that are no items yet: a selection may find a row twice that moves in its list meanwhile."""
    action = OPERATIONS.get(operation.action)
    of_events = action is not None and action.model is InboxEvent
    column = "event_id" if of_events else "process_id"
    rows = {one.target: one for one in found}
    known = operation.items.filter(**{f"{column}__in": list(rows)})
    for target in known.values_list(column, flat=True):
        del rows[target]
    items = [
        BulkItem(
            operation=operation,
            revision=one.revision,
            key=one.key,
            **{column: one.target},
        )
        for one in rows.values()
    ]
    return BulkItem.objects.bulk_create(items)


def _begin(operation: BulkOperation, now: datetime) -> None:
    """Begins the operation with all its items; pauses it for a person if they are more than the page showed."""
    if operation.status not in GOING_ON:
        return
    if not operation.total:
        operation.status = BulkStatus.STOPPED
        operation.say(NONE_LEFT)
        operation.finished_at = now
    elif operation.total > operation.shown:
        operation.status = BulkStatus.PAUSED
        operation.say(MORE if operation.exact else UNCOUNTED)
    else:
        operation.status = BulkStatus.RUNNING
