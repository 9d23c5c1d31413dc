"""How a process stands when it has not ended: waiting as designed, retrying something, or in need of a person."""

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
    """The status that the stored steps, commands and events of a live process give it.

    Args:
        instance: the process.
        troubled: whether it may be in trouble over an event: only then is a workflow's inbox asked.
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
    """The verdicts of the events that could not be delivered, or will be tried again."""
    again = Q(verdict=Verdict.RECEIVED, wake_at__isnull=False) & ~Q(error="")
    events = InboxEvent.objects.filter(Q(verdict=Verdict.FAILED) | again)
    mine = events.filter(process=instance).order_by()
    return set(mine.values_list("verdict", flat=True).distinct())


def _of_steps(steps: set[str], events: set[str]) -> Status:
    """How a workflow stands, from the statuses of its open steps, and from what its inbox is in trouble over."""
    if StepStatus.FAILED in steps or Verdict.FAILED in events:
        return Status.FAILED
    if StepStatus.RETRYING in steps or events:
        return Status.RETRYING
    if steps & {StepStatus.READY, StepStatus.RUNNING}:
        return Status.RUNNING
    return Status.WAITING
