"""Steps that wait for something outside: an event, an operator's decision, or their deadline."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

from orchestrator.definition import Event
from orchestrator.definition.codec import decode, digest, encode
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import settling
from orchestrator.engine.change.following import go_on
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.claims.fence import fence
from orchestrator.engine.claims.give_back import rested
from orchestrator.engine.failures import of_step
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.tables import instances, step_runs
from orchestrator.exceptions import InvalidMessage, LeaseLost
from orchestrator.models import (
    Cause,
    CauseKind,
    StepKind,
    StepRun,
    StepStatus,
)

log = logging.getLogger(__name__)


def take(change: WorkflowChange, event: Event) -> bool:
    """Settles the oldest step that waits for such an event, if any does."""
    for run in _waiting(change, StepKind.WAIT):
        if change.plan[run.node].step.event is type(event):
            _settle(change, run, event, encode(event))
            return True
    return False


def decide(change: WorkflowChange, run: StepRun, choice: str) -> None:
    """Settles a step that asks, with an operator's choice.

    Raises:
        InvalidMessage: it is not one of the choices.
    """
    choices = change.plan[run.node].step.choices
    known = [str(member.value) for member in choices or ()]
    if choices is None or choice not in known:
        raise InvalidMessage(f"{choice!r} is not one of {', '.join(known)}")
    _settle(change, run, decode(choices, choice), choice)


def _waiting(change: WorkflowChange, kind: StepKind) -> list[StepRun]:
    runs = change.instance.step_runs.filter(kind=kind, status=StepStatus.WAITING)
    return list(runs.order_by("pk"))


def _settle(change: WorkflowChange, run: StepRun, result: Any, body: Any) -> None:
    given = {"result": body, "checksum": digest(body)}
    change.close_open(run, StepStatus.DONE, **given)
    settling.follow(change, run, result)


def run_late(run: StepRun) -> None:
    """Carries out a claimed step's deadline; nothing is raised."""
    try:
        with transaction.atomic(durable=True):
            _late(run)
    except LeaseLost as lost:
        log.info("the deadline of step run %s came too late: %s", run.pk, lost)
    except Exception as error:  # noqa: BLE001  # the running code may have no such definition
        of_step.of_step(run, error, None, Policy())


def _late(run: StepRun) -> None:
    """The step's other way is taken; without one the process is escalated and goes on waiting.

    Raises:
        LeaseLost: the process has ended, or the step was settled.
    """
    instance, now = instances.lock(run.instance_id)
    if instance is None or instance.finished_at is not None:
        raise LeaseLost("the process has ended")
    if instance.paused_at is not None:
        send([rested(run)])
        return
    cause = Cause.of(CauseKind.DEADLINE, run.pk, run.deadlines_fired)
    change = WorkflowChange.of(instance, cause, now)
    if change.plan[run.node].step.late is not None:
        change.close(run, StepStatus.CANCELLED, error="the deadline has passed")
        go_on(change, Settled(run.node, run.visit, "late"))
    else:
        fired = {
            "deadlines_fired": run.deadlines_fired + 1,
            "wake_at": None,
            "owner": "",
            "attempt": 0,
        }
        change.mark(step_runs.update(fired, fence(run)))
        change.touch(run, StepStatus.WAITING)
        change.escalate()
    change.write()
