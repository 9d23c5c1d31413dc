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
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.worker_slice import Watch, WorkerSlice, nobody
from orchestrator.engine.events import delivery, outbox
from orchestrator.engine.steps import running
from orchestrator.engine.storage.batch import database_now, send
from orchestrator.engine.storage.table import TURN, Claimed, Table
from orchestrator.engine.storage.tables import commands, events, step_runs
from orchestrator.models import CommandStatus, StepRun, StepStatus
from orchestrator.queue import answering, ring

HOLD_SECONDS = 1.0
"""After this long the rest of a claimed batch is given back, so that others can take it."""


@dataclass(frozen=True)
class Kind:
    """One kind of ready work: where it is claimed, in batches of how many, and how it is run."""

    table: Table[Any]
    run: Callable[[Any, WorkerSlice], None]
    batch: int
    claimed: dict[str, Any]


def _deliver(event: Any, worker_slice: WorkerSlice) -> None:
    with worker_slice.watch(conf().EVENT_TIMEOUT, leases.name_of(events, event.pk)):
        delivery.deliver(event)


def _carry_out(command: Any, worker_slice: WorkerSlice) -> None:
    handler = outbox.handler_of(command)
    limit = handler.timeout if handler else conf().EVENT_TIMEOUT
    with worker_slice.watch(limit, leases.name_of(commands, command.pk)):
        outbox.carry_out(command)


KINDS = (
    Kind(events, _deliver, 64, {}),
    Kind(commands, _carry_out, 8, {"status": CommandStatus.RUNNING}),
    Kind(step_runs, running.run, 16, {**running.CLAIMED}),
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
    worker_slice = WorkerSlice(
        queue, owner, lambda: stop() or time.monotonic() >= ends, watch
    )
    total = 0
    with answering(queue):
        while not worker_slice.over():
            done = sum(_batch(kind, worker_slice, stop) for kind in KINDS)
            if not done:
                return total
            total += done
    ring(queue)
    return total


def _batch(kind: Kind, worker_slice: WorkerSlice, stop: Callable[[], bool]) -> int:
    claimed = kind.table.claim(
        worker_slice.queue,
        worker_slice.owner,
        kind.batch,
        conf().LEASE_SECONDS,
        **kind.claimed,
    )
    if len(claimed) == kind.batch:
        ring(worker_slice.queue, others=True)
    works, early = _in_turn(kind.table, claimed)
    _give_back(kind, early, TURN)
    begun = time.monotonic()
    for number, work in enumerate(works):
        if number and (stop() or time.monotonic() - begun > HOLD_SECONDS):
            _give_back(kind, works[number:], timedelta(0))
            running.finish(worker_slice)
            return number
        kind.run(work, worker_slice)
    running.finish(worker_slice)
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
    begun = isinstance(work, StepRun) and work.status == StepStatus.RUNNING
    return {"status": StepStatus.READY} if begun else {}
