"""Firing one due deadline of a process manager's waiting step, under the lock of its process."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from orchestrator.configuration.conf import conf
from orchestrator.configuration.notice_settings import Topic
from orchestrator.definition import ProcessManager
from orchestrator.engine.change import incidents
from orchestrator.engine.change.change import settle_without_move
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.status import paused_time
from orchestrator.engine.sql.batch import Statement, send
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.engine.storage.stored_values import read_manager
from orchestrator.engine.work import failures
from orchestrator.engine.work.releasing import suspend
from orchestrator.exceptions import HandlerMissing, LeaseLost, WorkerDied
from orchestrator.models import Cause, CauseKind, StepRun, StepStatus
from orchestrator.text import Text

log = logging.getLogger(__name__)


def fire_deadline(run: StepRun) -> None:
    """Fire a claimed step run's next deadline. This raises nothing: every error is stored with the step run."""
    try:
        if run.attempt > conf().EVENT_ATTEMPTS:
            raise WorkerDied(
                "the worker died in each of %(number)s attempts", run.attempt - 1
            )
        with transaction.atomic(durable=True):
            _fire(run)
    except BaseException as error:  # noqa: BLE001  # a handler may raise anything
        failures.fail_work(run, error)


def _fire(run: StepRun) -> None:
    instance, now = instances.lock(run.instance_id)
    if instance is None or run.status != StepStatus.WAITING:
        raise LeaseLost
    if instance.paused_at is not None:
        send([suspend(run)])
        return
    definition = definitions.manager_of(instance)
    manager = read_manager(definition, instance, run.node)
    _check_deadline(run, definition)
    cause = Cause.of(CauseKind.DEADLINE, run.pk, run.deadlines_fired)
    move = ManagerChange(instance, cause, now, run.attempt)
    decide = manager.execute_deadline
    decision = call_application(run.node, decide, run.deadlines_fired, move.execute)
    fired = _fired(run, definition, now)
    move.mark(fired)
    move.tell(Topic.DEADLINE, run.node)
    if run.error:
        move.mark(incidents.resolve(Text("handled"), now, step_run_id=run.pk))
    if decision.outcome != "moved":
        concerned = instance if run.error else None
        settle_without_move(concerned, CauseKind.SETTLED, run, move.marks, now)
        return
    move.take(definition, decision)
    move.write()


def _check_deadline(run: StepRun, definition: type[ProcessManager]) -> None:
    """Raise HandlerMissing if the step has no such deadline in the running code."""
    if run.deadlines_fired >= len(definition.timers(definition.Step(run.node))):
        raise HandlerMissing(
            "the step %(step)s of %(name)s has no deadline %(number)s now",
            run.node,
            definition.name,
            run.deadlines_fired + 1,
        )


def _fired(run: StepRun, definition: type[ProcessManager], now: datetime) -> Statement:
    """The update that sets the step's next deadline, if there is one, under this worker's fence."""
    timers = definition.timers(definition.Step(run.node))
    following = run.deadlines_fired + 1
    values: dict[str, Any] = {
        "deadlines_fired": following,
        "wake_at": None,
        "attempt": 0,
        "owner": "",
        "error": "",
    }
    if following < len(timers):
        begun = run.started_at + paused_time(run.instance_id, run.started_at)
        later = run.extended or timedelta(0)
        values["wake_at"] = begun + timers[following] + later
    return step_runs.update(values, {**run.fence, "finished_at": None})
