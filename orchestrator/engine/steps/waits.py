"""Steps that wait for something outside: an event, an operator's decision, or their deadline."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db import transaction

from orchestrator.definition import Event
from orchestrator.definition.codec import decode, digest, encode
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import redoing
from orchestrator.engine.change.workflow import Flow
from orchestrator.engine.failures import of_step, of_work
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.tables import instances, step_runs
from orchestrator.exceptions import InvalidMessage, LeaseLost
from orchestrator.models import (
    Cause,
    CauseKind,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)

log = logging.getLogger(__name__)


def flow_of(instance: ProcessInstance, cause: Cause, now: datetime) -> Flow:
    """A change of a locked workflow."""
    plan = definitions.plan_of(instance)
    queue = definitions.workflow_of(instance).queue
    return Flow(instance, cause, now, plan, queue)


def take(flow: Flow, event: Event) -> bool:
    """Settles the oldest step that waits for such an event, if any does."""
    for run in _waiting(flow, StepKind.WAIT):
        if flow.plan[run.node].step.event is type(event):
            _settle(flow, run, event, encode(event))
            return True
    return False


def decide(flow: Flow, run: StepRun, choice: str) -> None:
    """Settles a step that asks, with an operator's choice.

    Raises:
        InvalidMessage: it is not one of the choices.
    """
    choices = flow.plan[run.node].step.choices
    known = [str(member.value) for member in choices or ()]
    if choices is None or choice not in known:
        raise InvalidMessage(f"{choice!r} is not one of {', '.join(known)}")
    _settle(flow, run, decode(choices, choice), choice)


def _waiting(flow: Flow, kind: StepKind) -> list[StepRun]:
    runs = flow.instance.step_runs.filter(kind=kind, status=StepStatus.WAITING)
    return list(runs.order_by("pk"))


def _settle(flow: Flow, run: StepRun, result: Any, body: Any) -> None:
    given = {"result": body, "checksum": digest(body)}
    flow.close_open(run, StepStatus.DONE, **given)
    if run.redo:
        redoing.finished(flow, run)
    else:
        flow.go_on(Settled(run.node, run.visit, "done", result))


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
    flow = flow_of(
        instance, Cause.of(CauseKind.DEADLINE, run.pk, run.deadlines_fired), now
    )
    if flow.plan[run.node].step.late is not None:
        flow.close(run, StepStatus.CANCELLED, error="the deadline has passed")
        flow.go_on(Settled(run.node, run.visit, "late"))
    else:
        fired = {
            "deadlines_fired": run.deadlines_fired + 1,
            "wake_at": None,
            "owner": "",
            "attempt": 0,
        }
        flow.mark(step_runs.update(fired, of_work.fence(run)))
        flow.touch(run, StepStatus.WAITING)
        flow.escalate()
    flow.write()
