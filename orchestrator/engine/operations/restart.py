"""Starting a process again as a new one, with an input that an operator has edited."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from uuid6 import uuid7

from orchestrator import registry
from orchestrator.definition import Workflow
from orchestrator.definition.codec import decode
from orchestrator.engine.change import starting
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import on_instance
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import (
    Cause,
    CauseKind,
    OperatorAction,
    ProcessInstance,
    StepRun,
)


def restart(
    instance_id: UUID, input_json: Any, *, request: ActionRequest
) -> OperatorAction:
    """Starts a new process of the newest version of the same workflow; its id is in `after["restarted_as"]`.

    A process that has failed is cancelled in the same commit, nothing of it is undone: the new one takes over its key,
    and its place if it is a part of another process.

    Args:
        instance_id: the process that has failed or ended.
        input_json: the input as JSON values, read as strictly as any input.
        request: who wants it, and why.

    Raises:
        OperationRefused: it is still going on, the input is not of the declared form, its key is taken, the page is
            stale, or the operator may not.
    """

    def effect(instance: ProcessInstance, now: datetime) -> dict[str, Any]:
        definition = _definition(instance)
        given = _read(definition, input_json)
        new = uuid7()
        parent = None
        if instance.finished_at is None:
            parent = _hand_over(instance, new)
            _stop(instance, now, request)
        key = definition.correlation_key(given) or instance.correlation_key
        _begin(definition, given, new, key, parent)
        return {"restarted_as": str(new)}

    return on_instance("restart", instance_id, request, effect, with_parent=True)


def _definition(instance: ProcessInstance) -> type[Workflow]:
    found = registry.definition(instance.name)
    if not issubclass(found, Workflow):
        raise OperationRefused(f"{instance.name} is no longer a workflow")
    return found


def _read(definition: type[Workflow], input_json: Any) -> Any:
    try:
        return decode(definition.Input, input_json)
    except InvalidMessage as mistake:
        raise OperationRefused(
            f"this is no input of {definition.name}: {mistake}"
        ) from None


def _hand_over(instance: ProcessInstance, new: UUID) -> ProcessInstance | None:
    """The step of another process that waits for this one waits for the new one instead."""
    waiting = StepRun.objects.filter(child=instance.pk, finished_at=None)
    runs = list(waiting)
    send([step_runs.update({"child": new}, {"id": run.pk}) for run in runs])
    return instance.parent if runs else None


def _stop(instance: ProcessInstance, now: datetime, request: ActionRequest) -> None:
    change = WorkflowChange.of(instance, Cause.of(CauseKind.OPERATOR, request.key), now)
    change.stop(by="restarted as new")
    change.write()


def _begin(
    definition: type[Workflow],
    given: Any,
    new: UUID,
    key: str,
    parent: ProcessInstance | None,
) -> None:
    live = ProcessInstance.objects.live().filter(name=definition.name)
    taken = OperationRefused(
        f"there is already a live {definition.name} with the key {key!r}"
    )
    if key and live.filter(correlation_key=key).exists():
        raise taken
    try:
        with transaction.atomic():
            starting.begin(definition, given, process_id=new, key=key, parent=parent)
    except IntegrityError:
        raise taken from None
