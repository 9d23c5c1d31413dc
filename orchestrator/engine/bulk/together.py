"""Doing an action to several items in one statement and one commit, each as if by itself.

Only what the action says needs no look at anything else goes together. What the group commit leaves out has left
nothing, and is pressed by itself, which tells what stands in its way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from orchestrator.engine.bulk.request import request_of
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations import (
    OPERATIONS,
    Circumstances,
    Press,
    ProcessOperation,
)
from orchestrator.engine.operations.audit import row_of
from orchestrator.engine.operations.base import shown
from orchestrator.engine.operations.circumstances import Processes
from orchestrator.engine.storage import group_commit
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.tables import instances, operator_actions
from orchestrator.exceptions import ProcessionError
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    BulkVerdict,
    OperatorAction,
)
from orchestrator.queue import ring_after_commit

log = logging.getLogger(__name__)

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
        if _can(action, one)
    ]
    before = {press.process.pk: shown(press.process) for press in presses}
    requests = {press.process.pk: press.request for press in presses}
    changes: list[ProcessChange] = []
    writes: list[list[Statement]] = []
    for change in action.together(presses, *operation.given):
        pk = change.instance.pk
        try:
            rows = change.prepared()
        except ProcessionError as refusal:  # by itself it is refused, and says why
            log.info("%s is tried by itself: %s", change.instance, refusal)
            continue
        changes.append(change)
        row = row_of(
            action.name,
            requests[pk],
            OperatorAction.Result.DONE,
            instance_id=pk,
            at=change.now,
            before=before[pk],
            after=shown(change.instance) | {"revision": change.revision},
        )
        writes.append([*rows, operator_actions.insert(row)])
    _commit(changes, writes, mine)
    return [item for item in items if item.verdict == BulkVerdict.WAITING]


def _can(action: ProcessOperation, process: Circumstances) -> bool:
    return not action.why_not(process)


def _commit(
    changes: Sequence[ProcessChange],
    writes: Sequence[Sequence[Statement]],
    items: dict[Any, BulkItem],
) -> None:
    """Writes the changes, and gives the items of those that were written their verdict."""
    if len(changes) < 2:
        return
    written, refusal = group_commit.commit(writes)
    if refusal is not None:  # each by itself tells whose it is
        log.info("some items could not be written together: %s", refusal)
    queues = set[str]()
    for change, is_written in zip(changes, written, strict=True):
        if is_written:
            item = items[change.instance.pk]
            item.verdict, item.detail = BulkVerdict.TRIED, ""
            item.tried_at = change.now
            queues |= change.rings
            change.rings = set()  # once for all of them
            change.written()
    for queue in queues:
        ring_after_commit(queue, others=True)
