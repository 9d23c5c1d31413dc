"""Doing an action to several items in one statement and one commit, each as if by itself.

Only what the action says needs no look at anything else goes together. What the group commit leaves out has left
nothing, and is pressed by itself, which tells what stands in its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.engine.bulk.request import request_of
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.committing import commit_together
from orchestrator.engine.operations import (
    OPERATIONS,
    Press,
    ProcessOperation,
)
from orchestrator.engine.operations.audit import row_of
from orchestrator.engine.operations.base import shown
from orchestrator.engine.operations.circumstances import Processes
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.tables import instances, operator_actions
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    BulkVerdict,
    OperatorAction,
)

MOST = 50
"""Items of one commit."""


def press_together(
    operation: BulkOperation, items: Sequence[BulkItem], actor: Any
) -> list[BulkItem]:
    """Does the action to those items that go together, which get their verdict. Returns the others.

    Args:
        operation: as it was claimed.
        items: no more than `MOST`.
        actor: in whose name; may do it.
    """
    action = OPERATIONS[operation.action]
    if len(items) < 2 or not isinstance(action, ProcessOperation):
        return list(items)
    mine = {item.process_id: item for item in items if item.process_id is not None}
    known, now = instances.read_many(list(mine))
    as_frozen = [
        known[pk]
        for pk, item in mine.items()
        if pk in known and known[pk].revision == item.revision
    ]
    presses = [
        Press(request_of(operation, mine[one.instance.pk], actor), one.instance, now)
        for one in Processes(as_frozen).each()
        if not action.why_not(one)
    ]
    before = {press.process.pk: shown(press.process) for press in presses}
    requests = {press.process.pk: press.request for press in presses}

    def prepare(change: ProcessChange) -> tuple[ProcessChange, list[Statement]]:
        pk, rows = change.instance.pk, change.prepared()
        row = row_of(
            action.name,
            requests[pk],
            OperatorAction.Result.DONE,
            instance_id=pk,
            at=change.now,
            before=before[pk],
            after=shown(change.instance) | {"revision": change.revision},
        )
        return change, [*rows, operator_actions.insert(row)]

    changes = action.together(presses, *operation.given)
    for change, _ in commit_together(changes, prepare).done:
        item = mine[change.instance.pk]
        item.verdict, item.detail = BulkVerdict.TRIED, ""
        item.tried_at = change.now
    return [item for item in items if item.verdict == BulkVerdict.WAITING]
