"""The status of a live process: running, waiting as designed, retrying, or failed."""

from __future__ import annotations

from django.db.models import Q

from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    ProcessInstance,
    Status,
    StepStatus,
    Verdict,
)

TROUBLED = (Status.RETRYING, Status.FAILED)


def status_of(instance: ProcessInstance, *, troubled: bool = True) -> Status:
    """Return the status of a live process, from its stored steps, commands and events.

    Args:
        instance: the process.
        troubled: whether an event of it may be in trouble: only then a workflow's events are read.
    """
    open_runs = instance.step_runs.filter(finished_at=None).exclude(kind="")
    steps = set(open_runs.values_list("status", flat=True).distinct())
    if steps:
        events = _troubled_events(instance) if troubled else set()
        return _of_steps(steps, events)
    commands = instance.commands.all()
    if commands.filter(status=CommandStatus.FAILED).exists():
        return Status.FAILED
    events = _troubled_events(instance)
    if Verdict.FAILED in events:
        return Status.FAILED
    if instance.incidents.open().filter(kind="deadline_failed").exists():
        return Status.FAILED
    if commands.filter(status=CommandStatus.RETRYING).exists():
        return Status.RETRYING
    deadlines = instance.step_runs.filter(finished_at=None, wake_at__isnull=False)
    again = events or deadlines.exclude(error="").exists()
    return Status.RETRYING if again else Status.WAITING


def _troubled_events(instance: ProcessInstance) -> set[str]:
    """The verdicts of the process's events that have failed, or wait for another attempt."""
    again = Q(verdict=Verdict.RECEIVED, wake_at__isnull=False) & ~Q(error="")
    events = InboxEvent.objects.filter(Q(verdict=Verdict.FAILED) | again)
    mine = events.filter(process=instance).order_by()
    return set(mine.values_list("verdict", flat=True).distinct())


def _of_steps(steps: set[str], events: set[str]) -> Status:
    """The status of a workflow, from the statuses of its open steps and the verdicts of its troubled events."""
    if StepStatus.FAILED in steps or Verdict.FAILED in events:
        return Status.FAILED
    if StepStatus.RETRYING in steps or events:
        return Status.RETRYING
    if steps & {StepStatus.READY, StepStatus.RUNNING}:
        return Status.RUNNING
    return Status.WAITING
