"""Retrying processes together: processes whose only trouble is a few failed commands or plain steps.

They are read without a lock, each fact by one query for all of them, and written in a group commit, which leaves out
processes that have changed since. Every other process is retried singly (`retrying`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q

from orchestrator.containers import group_by_key
from orchestrator.engine.change.change import ProcessChange, is_independent
from orchestrator.engine.change.workflows import retrying
from orchestrator.engine.change.workflows.workflow_change import UNBLOCKED
from orchestrator.engine.sql.tables import commands, incidents, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    Blocked,
    Cause,
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)

FEW = 8
"""The most failed commands or steps, and the most incidents, of a process that is retried together with others."""


class RetryChange(ProcessChange):
    """The retry of a process without other trouble, as it was read."""

    def __init__(self, instance: ProcessInstance, cause: Cause, now: datetime) -> None:
        super().__init__(instance, cause, now)
        self.alone = True
        self.workflow = definitions.runs_workflow(instance)

    def settle_status(self) -> None:
        """The process is out of trouble: the failed work is due again, and it had no other trouble."""
        self.instance.status = Status.RUNNING if self.workflow else Status.WAITING

    def checkpoint_state(self) -> tuple[list[str], Any]:
        return (list(self.steps), {}) if self.workflow else super().checkpoint_state()


class FailedParts(NamedTuple):
    """The failed commands, failed steps and open incidents of some processes, by the processes' keys."""

    commands: Mapping[UUID, Sequence[IssuedCommand]]
    steps: Mapping[UUID, Sequence[StepRun]]
    incidents: Mapping[UUID, Sequence[int]]

    def failed_of(self, process: UUID) -> Sequence[IssuedCommand | StepRun]:
        """Return the failed commands of a process manager, or the failed steps of a workflow."""
        return [*self.commands.get(process, ()), *self.steps.get(process, ())]


def group_retries(
    wanted: Iterable[tuple[ProcessInstance, Cause]], now: datetime
) -> list[RetryChange]:
    """Return the changes that retry the processes that can be retried together.

    Args:
        wanted: the processes as they were read, each with its cause.
        now: the database's time before they were read.
    """
    simple = {one.pk: (one, cause) for one, cause in wanted if _is_simple(one)}
    for others in _otherwise_troubled(list(simple)):
        for pk in others:
            simple.pop(pk, None)
    facts = _facts(list(simple))
    return [
        _retry(one, cause, now, facts)
        for pk, (one, cause) in simple.items()
        if 0 < len(facts.failed_of(pk)) <= FEW
        and len(facts.incidents.get(pk, ())) <= FEW
    ]


def _is_simple(instance: ProcessInstance) -> bool:
    """Whether a retry of the process concerns only this process."""
    return instance.status == Status.FAILED and is_independent(instance)


def _otherwise_troubled(keys: Sequence[UUID]) -> Iterable[Iterable[UUID]]:
    """The processes with other work for a retry than failed commands and failed plain steps."""
    visits = StepRun.objects.filter(instance__in=keys).order_by()
    plain = Q(kind=StepKind.STEP, child=None)
    open_ = visits.filter(finished_at=None)
    failed = open_.filter(status=StepStatus.FAILED).exclude(plain)
    yield failed.values_list("instance_id", flat=True)
    again = open_.exclude(error="").exclude(status=StepStatus.FAILED)
    yield again.values_list("instance_id", flat=True)
    retrying_ = open_.filter(status=StepStatus.RETRYING)
    yield retrying_.values_list("instance_id", flat=True)
    brought_back = visits.filter(blocked=Blocked.FAILURE)
    yield brought_back.values_list("instance_id", flat=True)
    events = InboxEvent.objects.filter(process__in=keys).order_by()
    due = events.filter(verdict__in=[Verdict.RECEIVED, Verdict.FAILED])
    yield (pk for pk in due.values_list("process_id", flat=True) if pk is not None)
    ours = [Incident.Kind.COMMAND_FAILED, Incident.Kind.STEP_FAILED]
    others = Incident.objects.open().filter(instance__in=keys).exclude(kind__in=ours)
    found = others.order_by().values_list("instance_id", flat=True)
    yield (pk for pk in found if pk is not None)


def _facts(keys: Sequence[UUID]) -> FailedParts:
    rows = IssuedCommand.objects.filter(instance__in=keys)
    rows = rows.filter(status__in=IssuedCommand.FAILING).order_by("pk")
    failed = rows.only("instance_id", "status", "queue")
    runs = StepRun.objects.filter(
        instance__in=keys, finished_at=None, status=StepStatus.FAILED
    )
    fields = ("instance_id", "status", "owner", "queue", "node", "kind")
    steps = runs.only(*fields).order_by("pk")
    opened = Incident.objects.open().filter(instance__in=keys).order_by("pk")
    return FailedParts(
        group_by_key((one.instance_id, one) for one in failed),
        group_by_key((one.instance_id, one) for one in steps),
        group_by_key(opened.values_list("instance_id", "pk")),
    )


def _retry(
    instance: ProcessInstance, cause: Cause, now: datetime, facts: FailedParts
) -> RetryChange:
    change = RetryChange(instance, cause, now)
    again: dict[str, Any] = {"wake_at": now, "attempt": 0, "owner": ""}
    for command in facts.commands.get(instance.pk, ()):
        ready = {**again, "status": CommandStatus.READY, "finished_at": None}
        as_read = {"id": command.pk, "status": command.status}
        change.mark(commands.update(ready, as_read))
        change.to_wake.add(command.queue)
    for run in facts.steps.get(instance.pk, ()):
        due = {**again, **UNBLOCKED, "status": StepStatus.READY, "declined": False}
        held = {"id": run.pk, "status": run.status, "owner": run.owner}
        change.mark(step_runs.update(due, held))
        change.steps[run.node] = str(StepStatus.READY)
        change.to_wake.add(run.queue)
    resolved = {"resolved_at": now, "resolution": retrying.BY}
    for pk in facts.incidents.get(instance.pk, ()):
        change.mark(incidents.update(resolved, {"id": pk, "resolved_at": None}))
    return change
