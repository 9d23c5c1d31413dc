"""Running a queue's ready work: events, commands and deadlines, oldest first, claimed in small batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from orchestrator.conf import conf
from orchestrator.engine import delivery, leases, outbox, steps
from orchestrator.engine.sending import database_now, send
from orchestrator.engine.shift import Shift, Watch, nobody
from orchestrator.engine.tables import TURN, Claimed, Table
from orchestrator.engine.transition import commands, events, step_runs
from orchestrator.models import CommandStatus, StepRun, StepStatus
from orchestrator.queue import answering, ring

HOLD_SECONDS = 1.0
"""After this long the rest of a claimed batch is given back, so that others can take it."""


@dataclass(frozen=True)
class Kind:
    """One kind of ready work: where it is claimed, in batches of how many, and how it is run."""

    table: Table[Any]
    run: Callable[[Any, Shift], None]
    batch: int
    claimed: dict[str, Any]


def _deliver(event: Any, shift: Shift) -> None:
    with shift.watch(conf().EVENT_TIMEOUT, leases.name_of(events, event.pk)):
        delivery.deliver(event)


def _carry_out(command: Any, shift: Shift) -> None:
    handler = outbox.handler_of(command)
    limit = handler.timeout if handler else conf().EVENT_TIMEOUT
    with shift.watch(limit, leases.name_of(commands, command.pk)):
        outbox.carry_out(command)


KINDS = (
    Kind(events, _deliver, 64, {}),
    Kind(commands, _carry_out, 8, {"status": CommandStatus.RUNNING}),
    Kind(step_runs, steps.run, 16, {**steps.CLAIMED}),
)


def drain(
    queue: str = "default",
    *,
    owner: str = "",
    seconds: float | None = None,
    stop: Callable[[], bool] = lambda: False,
    watch: Watch = nobody,
) -> int:
    """Runs ready work until there is none, or the time slice ends and another bell is rung.

    Args:
        queue: whose work.
        owner: the worker's boot id; made up when empty.
        seconds: the time slice; None for as long as there is work.
        stop: asked between pieces of work; what is claimed but not begun is given back uncharged.
        watch: told of each piece of work and the seconds it may take.

    Returns:
        How many pieces of work were run.
    """
    owner = owner or uuid4().hex
    ends = time.monotonic() + seconds if seconds is not None else float("inf")
    shift = Shift(queue, owner, lambda: stop() or time.monotonic() >= ends, watch)
    total = 0
    with answering(queue):
        while not shift.over():
            done = sum(_batch(kind, shift, stop) for kind in KINDS)
            if not done:
                return total
            total += done
    ring(queue)
    return total


def _batch(kind: Kind, shift: Shift, stop: Callable[[], bool]) -> int:
    claimed = kind.table.claim(
        shift.queue, shift.owner, kind.batch, conf().LEASE_SECONDS, **kind.claimed
    )
    if len(claimed) == kind.batch:
        ring(shift.queue, others=True)
    works, early = _in_turn(kind.table, claimed)
    _give_back(kind, early, TURN)
    begun = time.monotonic()
    for number, work in enumerate(works):
        if number and (stop() or time.monotonic() - begun > HOLD_SECONDS):
            _give_back(kind, works[number:], timedelta(0))
            steps.finish(shift)
            return number
        kind.run(work, shift)
    steps.finish(shift)
    return len(claimed)


def _in_turn(
    table: Table[Any], claimed: list[Claimed[Any]]
) -> tuple[list[Any], list[Any]]:
    """Parts the claimed rows into those whose turn it is and those that would overtake one that others hold."""
    works: list[Any] = []
    early: list[Any] = []
    ahead: Counter[Any] = Counter()
    for item in claimed:
        same = getattr(item.work, table.order) if table.order else None
        if item.older > ahead[same]:
            early.append(item.work)
        else:
            works.append(item.work)
        ahead[same] += 1
    return works, early


def _give_back(kind: Kind, works: list[Any], pause: timedelta) -> None:
    """Makes claimed rows due again after a pause; the attempt is not charged."""
    if not works:
        return
    due = database_now() + pause
    send(
        kind.table.update(
            {
                "owner": "",
                "wake_at": due,
                "attempt": work.attempt - 1,
                **_unbegun(work),
            },
            {"id": work.pk, "owner": work.owner, "attempt": work.attempt},
            rows=None,
        )
        for work in works
    )


def _unbegun(work: Any) -> dict[str, Any]:
    """A step that was only claimed is as ready as before."""
    running = isinstance(work, StepRun) and work.status == StepStatus.RUNNING
    return {"status": StepStatus.READY} if running else {}
