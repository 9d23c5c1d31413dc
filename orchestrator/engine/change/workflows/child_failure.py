"""The failure of a sub-process, as its parent's step fails with it."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from orchestrator.exceptions import ChildCancelled, SubprocessDeclined, SubprocessFailed
from orchestrator.models import (
    Blocked,
    InboxEvent,
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.text import Text


def failure_of(child: ProcessInstance) -> ChildCancelled | SubprocessFailed | None:
    """Return the error with which the parent's step of a process fails; None while it goes on and if it has completed.

    While the process is paused, and while it is undone, the parent waits.
    """
    failures = child.step_runs.filter(status=StepStatus.FAILED)
    if child.finished_at is None:
        if child.paused_at is not None or _is_undone(child):
            return None
        # A declined step comes first: in the parent's place it would have the whole process undone.
        run = failures.filter(finished_at=None).order_by("-declined", "pk").first()
        return _failed(child, run) if run is not None else _of_event(child)
    if child.status != Status.CANCELLED:
        return None
    if declined := failures.filter(declined=True).first():
        return _failed(child, declined)
    return ChildCancelled(
        "the sub-process %(name)s %(process)s was cancelled", child.name, child.pk
    )


def _of_event(child: ProcessInstance) -> SubprocessFailed | None:
    """The failure of an event that could not be delivered to a process, if there is one."""
    undelivered = InboxEvent.objects.filter(process=child, verdict=Verdict.FAILED)
    event = undelivered.order_by("pk").first()
    if event is None:
        return None
    told = _told(Incident.objects.filter(event=event))
    return SubprocessFailed(child.name, child.pk, event.type, *told)


def _is_undone(child: ProcessInstance) -> bool:
    signs = Q(kind=StepKind.UNDO) | Q(blocked=Blocked.UNDOING)
    return child.step_runs.filter(signs).exists()


def _failed(child: ProcessInstance, run: StepRun) -> SubprocessFailed:
    """The failure of a visit, as its incident has it."""
    told = _told(Incident.objects.filter(step_run=run))
    kind = SubprocessDeclined if run.declined else SubprocessFailed
    return kind(child.name, child.pk, run.node, *told)


def _told(incidents: QuerySet[Incident]) -> tuple[str, str, str]:
    """The class and the message of the error in the last incident, and the key of its group."""
    told = incidents.order_by("pk").last()
    message, cause = (told.said, told.fingerprint) if told is not None else ("", "")
    if isinstance(message, Text) and message.values.keys() == {"error", "why"}:
        return message.values["error"], message.values["why"], cause
    name, _, text = message.partition(": ")
    if not name.isidentifier():  # the message has no class
        return "CorruptInput", message, cause
    return name, text, cause
