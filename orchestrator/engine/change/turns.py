"""The turns of a transition's commands after its commit: each is held until the one before it has settled.

The one before names the one that it holds: settling it makes that one due by its key, in the same message. A transition
with one such command sends nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.tables import commands
from orchestrator.models import CommandStatus, Delivery, IssuedCommand
from orchestrator.queue import ring_after_commit


def line_up(issued: Sequence[IssuedCommand], free: Collection[int]) -> None:
    """Has each command after the commit held by the one before it, but for those in the places that are free."""
    before: IssuedCommand | None = None
    for place, row in enumerate(issued):
        if row.delivery != Delivery.AFTER_COMMIT or place in free:
            continue
        if before is not None:
            before.holds = row.id
            row.status, row.wake_at = CommandStatus.HELD, None
        before = row


def let_go(command: IssuedCommand, now: datetime) -> list[Statement]:
    """Makes the command due that this one holds, if it holds any, and has its queue rung after the commit."""
    if command.holds is None:
        return []

    def ring(rows: list[Any]) -> None:
        for (queue,) in rows:
            ring_after_commit(queue)

    due = {"status": CommandStatus.READY, "wake_at": now}
    held = {"id": command.holds, "status": CommandStatus.HELD}
    return [commands.update(due, held, rows=None).returning("queue", ring)]
