"""Invariants of what people see first: the status of a process agrees with its rows, and no incident is out of date."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.db.models import Q

from orchestrator.engine.invariants.records import OVER
from orchestrator.engine.invariants.stored_sets import WHOLE, ProcessSet, StoredPart
from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.models.process_instance import ENDED

KINDS = Incident.Kind
OF_VISITS = (KINDS.STEP_FAILED, KINDS.DEADLINE_FAILED, KINDS.CORRUPTED_DATA)


def statuses(some: ProcessSet) -> Iterator[str]:
    """I4: a process has the status of its newest checkpoint, and says that it has failed exactly if work of it has."""
    failing = _failing(some)
    for process in some.processes:
        yield from _status(process, some, process.pk in failing)


def _status(
    process: ProcessInstance, some: ProcessSet, is_failing: bool
) -> Iterator[str]:
    said, over = process.status, process.finished_at is not None
    if (said in ENDED) != over:
        yield f"{process.pk} is {said}, but has {'ended' if over else 'not ended'}"
        return
    newest = some.checkpoints[process.pk][-1:]
    for row in newest:
        # Undoing a migration of the tables has let paused processes go on.
        differs = row.status not in (said, Status.PAUSED)
        if row.revision == process.revision and differs:
            yield f"{process.pk} is {said}, but its newest checkpoint says {row.status}"
    if (process.escalation_level > 0) != (process.escalated_at is not None):
        level, since = process.escalation_level, process.escalated_at
        yield f"{process.pk} is escalated to level {level}, but since {since}"
    if over or process.paused_at is not None:
        return
    if (said == Status.FAILED) != is_failing:
        work = "some" if is_failing else "no"
        yield f"{process.pk} is {said}, but {work} work of it has failed"


def _failing(some: ProcessSet) -> set[UUID]:
    """The live processes of which a visit, a command, an event or a deadline has failed for good."""
    live = [one.pk for one in some.processes if one.finished_at is None]
    if not live:
        return set()
    visits = StepRun.objects.filter(finished_at=None, status=StepStatus.FAILED)
    commands = IssuedCommand.objects.filter(status=CommandStatus.FAILED)
    events = InboxEvent.objects.filter(verdict=Verdict.FAILED)
    deadlines = Incident.objects.open().filter(kind=KINDS.DEADLINE_FAILED)
    failed = (
        visits.exclude(kind="").filter(instance__in=live).values_list("instance_id"),
        commands.filter(instance__in=live).values_list("instance_id"),
        events.filter(process__in=live).values_list("process_id"),
        deadlines.filter(instance__in=live).values_list("instance_id"),
    )
    return {pk for rows in failed for (pk,) in rows.order_by().distinct()}


def incidents(part: StoredPart = WHOLE) -> Iterator[str]:
    """I8: no incident is open about a command, an event, a visit or a process that needs no person any more."""
    unresolved = part.of(Incident.objects.open())
    wrong = {
        "command": Q(command__status__in=IssuedCommand.SETTLED),
        "event": Q(event__verdict__in=OVER),
        # The incident of a failed step is open until its process is undone. One about missing code stays for half a
        # minute when its step is left.
        "step run": Q(step_run__finished_at__isnull=False)
        & ~Q(step_run__status=StepStatus.FAILED)
        & ~Q(kind=KINDS.HANDLER_MISSING),
        "process": Q(instance__finished_at__isnull=False, kind__in=OF_VISITS),
    }
    for noun, over in wrong.items():
        for row in unresolved.filter(over).order_by()[:20]:
            yield f"incident {row.pk} is open, but its {noun} needs no person any more"
