"""What changed since a page was loaded, in words for operators."""

from __future__ import annotations

from django.utils.translation import override

from orchestrator.models import (
    CauseKind,
    Checkpoint,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    StepRun,
)

LOOKED_AT = 50
"""The newest transitions among which a person's action is looked for."""


def what_changed(instance: ProcessInstance, seen: int | None) -> str:
    """Who or what moved the process after the revision that the page showed."""
    told = _what_counts(instance, seen or 0)
    by = f": {_moved(told)}" if told else ""
    return (
        f"The process has changed since the page was loaded{by}. "
        f"It is now at revision {instance.revision}, the page showed {seen}."
    )


def _what_counts(instance: ProcessInstance, seen: int) -> Checkpoint | None:
    """What a person did last since then; else the last transition.

    Workers go on at once with what a person has begun. Whoever wanted the same must hear of the person, not of that.
    """
    rows = instance.checkpoints.only("instance", "revision", "cause", "at")
    newest = list(rows.order_by("-revision")[:LOOKED_AT])
    for one in newest:
        cause = one.moved_by
        if one.revision > seen and cause and cause.kind == CauseKind.OPERATOR:
            return one
    return newest[0] if newest else None


def _moved(checkpoint: Checkpoint) -> str:
    cause, at = checkpoint.moved_by, f"{checkpoint.at:%H:%M:%S} UTC"
    kind, ref = (cause.kind, cause.ref) if cause is not None else (None, "")
    match kind:
        case CauseKind.OPERATOR:
            action = OperatorAction.objects.filter(key=ref).first()
            who = f"{action.actor_name} did {action.action}" if action else ""
            return f"{who or 'an operator'} at {at}"
        case CauseKind.EVENT:
            event = InboxEvent.objects.filter(pk=ref).first()
            return f"{event.type if event else 'an event'} arrived at {at}"
        case CauseKind.STEP:
            run = StepRun.objects.filter(pk=ref).first()
            return f"{run.node if run else 'a step'} was done at {at}"
    with override("en"):  # as all that is kept; pages translate it for each reader
        return f"{checkpoint.said} at {at}"
