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
from orchestrator.text import Text

LOOKED_AT = 50
"""The newest transitions among which a person's action is looked for."""


def what_changed(instance: ProcessInstance, seen: int | None) -> str:
    """Who or what moved the process after the revision that the page showed."""
    told, stands = _what_counts(instance, seen or 0), (instance.revision, seen)
    if told is None:
        return Text(
            "The process has changed since the page was loaded. It is now at revision %(revision)s, the page showed "
            "%(seen)s.",
            *stands,
        )
    return Text(
        "The process has changed since the page was loaded: %(why)s. It is now at revision %(revision)s, the page "
        "showed %(seen)s.",
        _moved(told),
        *stands,
    )


def _what_counts(instance: ProcessInstance, seen: int) -> Checkpoint | None:
    """The last action of a person since then; else the last transition.

    Workers continue at once after an action. The message names the person's action, not what the workers did then.
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
        case CauseKind.OPERATOR if action := OperatorAction.objects.filter(
            key=ref
        ).first():
            who = action.actor_name
            return Text("%(who)s did %(action)s at %(time)s", who, action.action, at)
        case CauseKind.EVENT if event := InboxEvent.objects.filter(pk=ref).first():
            return Text("%(type)s arrived at %(time)s", event.type, at)
        case CauseKind.STEP if run := StepRun.objects.filter(pk=ref).first():
            return Text("%(step)s was done at %(time)s", run.node, at)
    with override("en"):  # as all that is kept; pages translate it for each reader
        return Text("%(cause)s at %(time)s", checkpoint.said, at)
