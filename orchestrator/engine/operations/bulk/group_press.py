"""Applying an action to several items in one statement and one commit, with the effect of single presses.

The action names the changes that need no further reads; only these are in the group. The group commit leaves no trace
of an item that it drops. The slice then presses that item by itself, and the press tells the obstacle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.committing import commit_together
from orchestrator.engine.operations import OPERATIONS, Press, ProcessOperation
from orchestrator.engine.operations.audit import audit_row
from orchestrator.engine.operations.bulk.request import item_request
from orchestrator.engine.operations.process import ProcessFacts, process_state
from orchestrator.engine.sql.batch import Statement
from orchestrator.engine.sql.tables import instances, operator_actions
from orchestrator.models import BulkItem, BulkOperation, BulkVerdict, OperatorAction

MOST = 50
"""Items of one commit."""


def press_together(
    operation: BulkOperation, items: Sequence[BulkItem], actor: Any
) -> list[BulkItem]:
    """Apply the action to the items that fit into one group commit, and give them their verdict. Return the others.

    Args:
        operation: as it was claimed.
        items: no more than `MOST`.
        actor: the person who began the operation, and has the permission.
    """
    action = OPERATIONS[operation.action]
    if len(items) < 2 or not isinstance(action, ProcessOperation):
        return list(items)
    mine = {item.process_id: item for item in items if item.process_id is not None}
    presses = _presses(operation, action, mine, actor)
    for change in _commit(action, presses, operation.given):
        item = mine[change.instance.pk]
        item.verdict, item.detail = BulkVerdict.TRIED, ""
        item.tried_at = change.now
    return [item for item in items if item.verdict == BulkVerdict.WAITING]


def _commit(
    action: ProcessOperation, presses: Sequence[Press], given: Sequence[Any]
) -> list[ProcessChange]:
    """The changes that one group commit has stored, each with its audit row."""
    by_key = {
        one.process.pk: (one.request, process_state(one.process)) for one in presses
    }

    def prepare(change: ProcessChange) -> tuple[ProcessChange, list[Statement]]:
        pk, rows = change.instance.pk, change.prepare()
        request, before = by_key[pk]
        facts: dict[str, Any] = {"instance_id": pk, "at": change.now, "before": before}
        facts["after"] = process_state(change.instance) | {"revision": change.revision}
        row = audit_row(action.name, request, OperatorAction.Result.DONE, **facts)
        return change, [*rows, operator_actions.insert(row)]

    committed = commit_together(action.together(presses, *given), prepare)
    return [change for change, _ in committed.done]


def _presses(
    operation: BulkOperation,
    action: ProcessOperation,
    items: Mapping[UUID, BulkItem],
    actor: Any,
) -> list[Press]:
    """The presses on processes that have not changed since they were frozen, and allow the action."""
    known, now = instances.read_many(list(items))
    as_frozen = [
        known[pk]
        for pk, item in items.items()
        if pk in known and known[pk].revision == item.revision
    ]
    return [
        Press(item_request(operation, items[one.instance.pk], actor), one.instance, now)
        for one in ProcessFacts(as_frozen).each()
        if not action.why_not(one)
    ]
