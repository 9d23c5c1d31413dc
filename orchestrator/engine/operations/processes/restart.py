"""Restart: starts a new process in the place of another, with an input that an operator has edited."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from orchestrator import registry
from orchestrator.definition import Workflow
from orchestrator.definition.codec import decode
from orchestrator.engine.change.workflows import retrying, starting
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import (
    UNDOING,
    Circumstances,
    ProcessOperation,
)
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import send
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import ProcessInstance, Status, StepRun
from orchestrator.text import Text


class RestartProcess(ProcessOperation):
    """Starts a new process of the newest version of the same workflow; its id is in `after["restarted_as"]`.

    The same commit cancels a failed process without an undo: the new process takes over its key, and its place in its
    parent. The action reads the input as strictly as a start does.
    """

    name = "restart"
    label = _("Restart as new")
    done = _("Started as new.")
    may = _("Can restart with edited input")
    text = _("Starts a new process with this input. The old one stays as it is.")
    icon = "restart"
    given = (
        Given("json", "json", _("Input"), lambda instance: instance.data, rows=10),
    )
    with_parents = True
    rank = 20
    on_whole = True
    of_workflows = True

    def why_not(self, process: Circumstances) -> str:
        if not process.workflow:
            return Text(
                "A process manager is started by an event: send that event again"
            )
        if process.ended:
            return ""
        if process.paused:
            return Text("The process is paused: resume it first")
        if process.instance.status != Status.FAILED:
            return Text(
                "The process is still going on: cancel it first, or wait for its end"
            )
        return UNDOING if process.undoing else ""

    def effect(self, press: Press, input_json: Any) -> dict[str, Any]:
        instance = press.process
        definition = _definition(instance)
        given = _read(definition, input_json)
        new = uuid7()
        parent = None
        if instance.finished_at is None:
            parent = _hand_over(instance, new)
            change = WorkflowChange.of(instance, press.cause, press.now)
            change.stop(by=Text("restarted as new"))
            change.write()
        key = definition.correlation_key(given) or instance.correlation_key
        begun = _begin(definition, given, new, key, parent)
        retrying.try_parents_again(begun, press.cause, press.now)
        return {"restarted_as": str(new)}


restart = register(RestartProcess())


def _definition(instance: ProcessInstance) -> type[Workflow]:
    found = registry.find_definition(instance.name)
    if not issubclass(found, Workflow):
        raise OperationRefused("%(name)s is no longer a workflow", instance.name)
    return found


def _read(definition: type[Workflow], input_json: Any) -> Any:
    try:
        return decode(definition.Input, input_json)
    except InvalidMessage as mistake:
        raise OperationRefused(
            "this is no input of %(name)s: %(why)s", definition.name, mistake
        ) from None


def _hand_over(instance: ProcessInstance, new: UUID) -> ProcessInstance | None:
    """Let the step of the parent wait for the new process. Return the parent, if a step waits.

    A worker that has just claimed the step, to read the end of the old process, loses its lease.
    """
    waiting = StepRun.objects.filter(child=instance.pk, finished_at=None)
    runs = list(waiting)
    anew = {"child": new, **retrying.UNHELD}
    send([step_runs.update(anew, {"id": run.pk}) for run in runs])
    return instance.parent if runs else None


def _begin(
    definition: type[Workflow],
    given: Any,
    new: UUID,
    key: str,
    parent: ProcessInstance | None,
) -> ProcessInstance:
    instances.check_free(definition.name, key)
    pin = definitions.make_pin(definition, given)
    try:
        with transaction.atomic():
            return starting.begin_process(pin, process_id=new, key=key, parent=parent)
    except IntegrityError:
        instances.check_free(definition.name, key)
        raise OperationRefused(
            "a %(name)s with the key %(key)s has ended this moment: press again",
            definition.name,
            repr(key),
        ) from None
