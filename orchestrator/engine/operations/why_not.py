"""Why an action cannot be done, and what changed since a page was loaded, in words for operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from django.db.models import Q, QuerySet

from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.storage.results import GIVEN
from orchestrator.models import (
    Blocked,
    CauseKind,
    Checkpoint,
    Definition,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
)

ENDED = "The process has ended"
UNDOING = "The process is being undone: its finished steps no longer count"


class Circumstances:
    """What decides which actions can be done with a process, each asked of the tables at most once."""

    def __init__(self, instance: ProcessInstance) -> None:
        self.instance = instance

    @property
    def ended(self) -> bool:
        return self.instance.finished_at is not None

    @cached_property
    def workflow(self) -> bool:
        return is_workflow(self.instance)

    @cached_property
    def undoing(self) -> bool:
        signs = Q(kind=StepKind.UNDO) | Q(blocked=Blocked.UNDOING)
        return self.workflow and self._runs().filter(signs).exists()

    @property
    def not_open(self) -> str:
        """Why nothing can be done to the steps of a process; "" if it can."""
        if not self.workflow:
            return "Only a workflow has steps that run by themselves"
        if self.ended:
            return f"{ENDED}: restart it as a new one"
        return ""

    def has_trouble(self) -> bool:
        if self.instance.status in TROUBLED:
            return True
        if self.instance.commands.filter(status__in=["failed", "retrying"]).exists():
            return True
        # What this code could not do is set aside, and due again by itself; it does not change the status.
        return self._open().filter(~Q(error=""), wake_at__isnull=False).exists()

    def can_be_skipped(self) -> bool:
        return self._open().exclude(kind__in=[StepKind.JOIN, StepKind.MAP]).exists()

    def has_result(self) -> bool:
        return self._runs().filter(status__in=GIVEN).exists()

    def asks(self) -> bool:
        return self._open().filter(kind=StepKind.ASK).exists()

    def _open(self) -> QuerySet[StepRun]:
        return self._runs().filter(finished_at=None)

    def _runs(self) -> QuerySet[StepRun]:
        return StepRun.objects.filter(instance=self.instance.pk)


def is_workflow(instance: ProcessInstance) -> bool:
    """Whether a process is a workflow; asks the database only when its definition was not read with it."""
    if ProcessInstance._meta.get_field("definition").is_cached(instance):
        return instance.definition.kind == Definition.Kind.WORKFLOW
    definition = Definition.objects.filter(pk=instance.definition_id)
    return definition.filter(kind=Definition.Kind.WORKFLOW).exists()


def why_not(
    action: str, instance: ProcessInstance, found: Circumstances | None = None
) -> str:
    """The reason why an action cannot be done now, or "" if it can."""
    return REASONS[action](found or Circumstances(instance))


def _retry(found: Circumstances) -> str:
    return "" if found.has_trouble() else "Nothing has failed"


def _escalate(found: Circumstances) -> str:
    return ENDED if found.ended else ""


def _cancel(found: Circumstances) -> str:
    if found.ended:
        return ENDED
    return "It is already being undone" if found.undoing else ""


def _redo(found: Circumstances) -> str:
    if found.not_open or found.undoing:
        return found.not_open or UNDOING
    return "" if found.has_result() else "No step is done yet"


def _resume(found: Circumstances) -> str:
    return found.not_open or (UNDOING if found.undoing else "")


def _skip(found: Circumstances) -> str:
    if found.not_open:
        return found.not_open
    return "" if found.can_be_skipped() else "No step is open"


def _decide(found: Circumstances) -> str:
    if found.not_open:
        return found.not_open
    return "" if found.asks() else "No step asks for a decision"


def _restart(found: Circumstances) -> str:
    if not found.workflow:
        return "A process manager is started by an event: send that event again"
    if found.ended:
        return ""
    if found.instance.status != Status.FAILED:
        return "The process is still going on: cancel it first, or wait for its end"
    return UNDOING if found.undoing else ""


REASONS: dict[str, Callable[[Circumstances], str]] = {
    "retry": _retry,
    "escalate": _escalate,
    "cancel": _cancel,
    "redo": _redo,
    "resume": _resume,
    "skip": _skip,
    "decide": _decide,
    "restart": _restart,
}
"""The actions on a process."""


def what_changed(instance: ProcessInstance, seen: int | None) -> str:
    """Who or what moved the process after the revision that the page showed."""
    latest = instance.checkpoints.order_by("-revision").first()
    by = f": {_cause(latest)}" if latest else ""
    return (
        f"The process has changed since the page was loaded{by}. "
        f"It is now at revision {instance.revision}, the page showed {seen}."
    )


def _cause(checkpoint: Checkpoint) -> str:
    cause, at = checkpoint.moved_by, f"{checkpoint.at:%H:%M:%S} UTC"
    if cause.kind == CauseKind.OPERATOR:
        action = OperatorAction.objects.filter(key=cause.ref).first()
        return (
            f"{action.actor_name} did {action.action} at {at}"
            if action
            else f"an operator at {at}"
        )
    if cause.kind == CauseKind.EVENT:
        event = InboxEvent.objects.filter(pk=cause.ref).first()
        return f"{event.type if event else 'an event'} arrived at {at}"
    if cause.kind == CauseKind.STEP:
        run = StepRun.objects.filter(pk=cause.ref).first()
        return f"{run.node if run else 'a step'} was done at {at}"
    return f"{cause.kind} at {at}"
