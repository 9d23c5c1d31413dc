"""How a process stands when it has not ended: waiting as designed, retrying something, or in need of a person."""

from __future__ import annotations

from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    ProcessInstance,
    Status,
    StepStatus,
    Verdict,
)

TROUBLED = (Status.RETRYING, Status.FAILED)


def status_of(instance: ProcessInstance) -> Status:
    """The status that the stored commands and events of a live process give it."""
    open_runs = instance.step_runs.filter(finished_at=None).exclude(kind="")
    steps = set(open_runs.values_list("status", flat=True).distinct())
    if steps:
        return _of_steps(steps)
    commands = instance.commands.all()
    events = InboxEvent.objects.filter(process=instance)
    if commands.filter(status=CommandStatus.FAILED).exists():
        return Status.FAILED
    if events.filter(verdict=Verdict.FAILED).exists():
        return Status.FAILED
    if instance.incidents.open().filter(kind="deadline_failed").exists():
        return Status.FAILED
    if commands.filter(status=CommandStatus.RETRYING).exists():
        return Status.RETRYING
    if events.filter(wake_at__isnull=False).exclude(error="").exists():
        return Status.RETRYING
    return Status.WAITING


def _of_steps(steps: set[str]) -> Status:
    """How a workflow stands, from the statuses of its open steps."""
    if StepStatus.FAILED in steps:
        return Status.FAILED
    if StepStatus.RETRYING in steps:
        return Status.RETRYING
    if steps & {StepStatus.READY, StepStatus.RUNNING}:
        return Status.RUNNING
    return Status.WAITING
