"""A process manager's instance with a history as long as one wants: rows as the engine writes them, a second apart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.utils import timezone

from monitoring.queries.graphs import graph_of
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

AT_ONCE = 1_000
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
    edges = [one for one in graph_of(process.definition).edges if one.kind == "event"]
    for first in range(process.revision + 1, number + 1, AT_ONCE):
        revisions = range(first, min(first + AT_ONCE, number + 1))
        _write(process, revisions, number, begin, edges)
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
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def _write(
    process: ProcessInstance,
    revisions: range,
    last: int,
    begin: datetime,
    edges: list[Edge],
) -> None:
    def at(revision: int) -> datetime:
        return begin + timedelta(seconds=revision)

    moving = InboxEvent.objects.bulk_create(_events(process, revisions, begin))
    keys = {row.revision: row.pk for row in moving}
    data = {revision: {**process.data, "number": revision} for revision in revisions}
    Checkpoint.objects.bulk_create(
        Checkpoint(
            instance=process,
            revision=revision,
            cause=f"event:{keys[revision]}",
            edge=edges[revision % len(edges)].id,
            steps={edges[revision % len(edges)].target: "waiting"},
            status="waiting",
            data=data[revision],
            checksum=digest(data[revision]),
            at=at(revision),
        )
        for revision in revisions
    )
    StepRun.objects.bulk_create(
        StepRun(
            instance=process,
            node=edges[revision % len(edges)].target,
            status=StepStatus.WAITING if revision == last else StepStatus.DONE,
            started_at=at(revision),
            finished_at=None if revision == last else at(revision + 1),
        )
        for revision in revisions
    )
    IssuedCommand.objects.bulk_create(
        IssuedCommand(
            id=command_id(process.pk, revision, 0),
            instance=process,
            revision=revision,
            type="Noted",
            body={},
            delivery=Delivery.IN_TRANSACTION,
            status=CommandStatus.DONE,
            issued_at=at(revision),
            finished_at=at(revision),
        )
        for revision in revisions
    )


def _events(
    process: ProcessInstance, revisions: range, begin: datetime
) -> Iterator[InboxEvent]:
    for revision in revisions:
        at = begin + timedelta(seconds=revision)
        yield _event(process, f"moved {revision}", at, Verdict.MOVED, revision)
        if revision % IGNORED == 0:
            later = at + timedelta(seconds=0.5)
            yield _event(process, f"ignored {revision}", later, Verdict.IGNORED, None)


def _event(
    process: ProcessInstance,
    event_id: str,
    at: datetime,
    verdict: Verdict,
    revision: int | None,
) -> InboxEvent:
    return InboxEvent(
        source="test",
        event_id=f"{event_id} of {process.pk}",
        target=process.name,
        type="ExternalOrderCreated",
        body={},
        process=process,
        verdict=verdict,
        revision=revision,
        received_at=at,
        handled_at=at,
    )
