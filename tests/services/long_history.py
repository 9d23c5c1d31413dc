"""A process manager's instance with a history as long as one wants: rows as the engine writes them, a second apart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from monitoring.base.graphs import stored_graph
from orchestrator.definition.codec import digest
from orchestrator.definition.graph import Edge
from orchestrator.models import (
    Checkpoint,
    CommandStatus,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    StepStatus,
    Verdict,
    command_id,
)
from tests.services.database import analyze

AT_ONCE = 1_000
TOLD: Any = {"source": "test", "type": "ExternalOrderCreated", "body": {}}
DONE: Any = {"status": StepStatus.DONE}
HANDLED: Any = {"delivery": Delivery.IN_TRANSACTION, "status": CommandStatus.DONE}
IGNORED = 10
"""After so many transitions an event comes that moves nothing."""


def lengthen(process_id: UUID, number: int, end: datetime | None = None) -> None:
    """Give a process so many transitions in all, each by an event, with a command and a visit; the last visit is open.

    Args:
        process_id: of a process manager's instance that waits.
        number: of transitions, more than it has.
        end: when the last of them is; now when left out.
    """
    process = ProcessInstance.objects.get(pk=process_id)
    end = end or timezone.now()
    begin = end - timedelta(seconds=number)
    process.checkpoints.update(at=begin)
    process.step_runs.update(started_at=begin)
    process.step_runs.filter(finished_at=None).update(
        status=StepStatus.DONE, finished_at=begin, wake_at=None
    )
    process.step_runs.update(finished_at=begin)
    process.events.update(received_at=begin, handled_at=begin)
    edges = [
        one for one in stored_graph(process.definition).edges if one.kind == "event"
    ]
    for first in range(process.revision + 1, number + 1, AT_ONCE):
        revisions = range(first, min(first + AT_ONCE, number + 1))
        _write(process, revisions, begin, edges)
    newest = StepRun.objects.filter(pk=process.step_runs.latest("pk").pk)
    newest.update(status=StepStatus.WAITING, finished_at=None)
    last = edges[number % len(edges)]
    ProcessInstance.objects.filter(pk=process_id).update(
        revision=number,
        step=last.target,
        status="waiting",
        started_at=begin,
        changed_at=end,
        finished_at=None,
    )
    if connection.vendor == "postgresql":
        analyze()


def _write(
    process: ProcessInstance, revisions: range, begin: datetime, edges: list[Edge]
) -> None:
    moving = InboxEvent.objects.bulk_create(_events(process, revisions, begin))
    keys = {row.revision: row.pk for row in moving}
    points, visits, commands = (
        list[Checkpoint](),
        list[StepRun](),
        list[IssuedCommand](),
    )
    for revision in revisions:
        at, edge = begin + timedelta(seconds=revision), edges[revision % len(edges)]
        of: Any = {"instance": process, "revision": revision}
        moved: Any = {"cause": f"event:{keys[revision]}", "edge": edge.id, "at": at}
        data = {**process.data, "number": revision}
        stands: Any = {"steps": {edge.target: "waiting"}, "status": "waiting"}
        points.append(
            Checkpoint(**of, **moved, **stands, data=data, checksum=digest(data))
        )
        until: Any = {"started_at": at, "finished_at": at + timedelta(seconds=1)}
        visits.append(StepRun(instance=process, node=edge.target, **DONE, **until))
        key = command_id(process.pk, revision, 0)
        noted: Any = {"type": "Noted", "body": {}, "issued_at": at, "finished_at": at}
        commands.append(IssuedCommand(id=key, **of, **HANDLED, **noted))
    Checkpoint.objects.bulk_create(points)
    StepRun.objects.bulk_create(visits)
    IssuedCommand.objects.bulk_create(commands)


def _events(
    process: ProcessInstance, revisions: range, begin: datetime
) -> Iterator[InboxEvent]:
    to: Any = {"target": process.name, "process": process}
    for revision in revisions:
        at = begin + timedelta(seconds=revision)
        told: list[Any] = [(f"moved {revision}", at, Verdict.MOVED, revision)]
        if revision % IGNORED == 0:
            later = at + timedelta(seconds=0.5)
            told.append((f"ignored {revision}", later, Verdict.IGNORED, None))
        for name, when, verdict, moved in told:
            row = InboxEvent(**to, **TOLD, event_id=f"{name} of {process.pk}")
            row.verdict, row.revision = verdict, moved
            row.received_at = row.handled_at = when
            yield row
