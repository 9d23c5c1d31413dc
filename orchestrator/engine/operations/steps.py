"""What operators do to single steps of a workflow: decide, skip, redo."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError

from orchestrator.definition.codec import decode, encode_as, seal
from orchestrator.engine.change import incidents, redoing, settling
from orchestrator.engine.change.workflow import WorkflowChange, cancel_child
from orchestrator.engine.operations import retry
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import on_instance
from orchestrator.engine.steps import waits
from orchestrator.exceptions import (
    InvalidMessage,
    LeaseLost,
    OperationRefused,
    StaleRevision,
)
from orchestrator.models import (
    Cause,
    CauseKind,
    OperatorAction,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)


def decide(
    instance_id: UUID, step_run_pk: int, choice: str, *, request: ActionRequest
) -> OperatorAction:
    """Decides for a step that asks; the process goes on with the choice.

    Args:
        instance_id: the process.
        step_run_pk: the step that asks.
        choice: the value of one of its choices.
        request: who decides, and why.

    Raises:
        OperationRefused: it does not ask any more, has no such choice, the page is stale, or the operator may not.
    """

    def effect(instance: ProcessInstance, now: datetime) -> dict[str, Any]:
        run = _open_run(instance, step_run_pk)
        if run.kind != StepKind.ASK:
            raise OperationRefused(f"{run.node} does not ask for a decision")
        change = WorkflowChange.of(
            instance, Cause.of(CauseKind.OPERATOR, request.key), now
        )
        _forget_trouble(change, run, "decided by an operator")
        _followed(run, lambda: waits.decide(change, run, choice))
        change.write()
        return {"decided": {run.node: choice}}

    return on_instance("decide", instance_id, request, effect)


def skip(
    instance_id: UUID, step_run_pk: int, result_json: Any, *, request: ActionRequest
) -> OperatorAction:
    """Passes an open visit over: the process goes on with the result that the operator gives in its place.

    Args:
        instance_id: the process.
        step_run_pk: the visit; of a map that of one element.
        result_json: the result as JSON values, read as strictly as the step's own.
        request: who wants it, and why.

    Raises:
        OperationRefused: it is not open or runs just now, the result is not of the step's type, the page is stale, or
            the operator may not.
    """

    def effect(instance: ProcessInstance, now: datetime) -> dict[str, Any]:
        run = _open_run(instance, step_run_pk)
        _check_can_be_skipped(run)
        change = WorkflowChange.of(
            instance, Cause.of(CauseKind.OPERATOR, request.key), now
        )
        result, body = _read(change, run, result_json)
        _forget_trouble(change, run, "skipped by an operator")
        given = {"result": body, "checksum": seal(body)}
        change.close_open(run, StepStatus.SKIPPED, **given)
        if run.child_id is not None:
            cancel_child(run)
        _followed(run, lambda: settling.follow(change, run, result, StepStatus.SKIPPED))
        change.write()
        return {"skipped": {run.node: body}}

    return on_instance("skip", instance_id, request, effect)


def redo(instance_id: UUID, node: str, *, request: ActionRequest) -> OperatorAction:
    """Does one finished step again, alone: steps that followed keep their results.

    Args:
        instance_id: the process.
        node: the step; of a map all elements, or those whose results are bad.
        request: who wants it, and why.

    Raises:
        OperationRefused: the step cannot be redone now, the page is stale, or the operator may not.
    """

    def effect(instance: ProcessInstance, now: datetime) -> dict[str, Any]:
        change = WorkflowChange.of(
            instance, Cause.of(CauseKind.OPERATOR, request.key), now
        )
        if reason := redoing.why_not(change, node):
            raise OperationRefused(reason)
        redoing.begin(change, node, "wanted by an operator", limit=None)
        change.write()
        return {"redone": node}

    return on_instance("redo", instance_id, request, effect)


def _open_run(instance: ProcessInstance, pk: int) -> StepRun:
    """An open visit of a process.

    Raises:
        OperationRefused: there is no such visit in it, or it is over.
    """
    run = StepRun.objects.filter(instance=instance, pk=pk).first()
    if run is None:
        raise OperationRefused(f"the process has no step run {pk}")
    if run.finished_at is not None:
        raise StaleRevision(
            f"{run.node} is over meanwhile: {StepStatus(run.status).label}"
        )
    return run


def _check_can_be_skipped(run: StepRun) -> None:
    if run.kind == StepKind.JOIN:
        raise OperationRefused(
            f"{run.node} has not begun: it waits for the steps before it, skip those"
        )
    if run.kind == StepKind.MAP:
        raise OperationRefused(
            f"{run.node} stands for all its elements: skip those that hold it up, one by one"
        )
    if run.status == StepStatus.RUNNING:
        raise OperationRefused(
            f"{run.node} is running, in attempt {run.attempt}: wait for its end"
        )


def _read(change: WorkflowChange, run: StepRun, result_json: Any) -> tuple[Any, Any]:
    """The result that an operator gives, as the step's type and as JSON values.

    Raises:
        OperationRefused: it is not of that type, with the place of the mistake.
    """
    vertex = change.plan.vertices.get(run.node)
    if vertex is None:
        raise OperationRefused(f"the running code has no step {run.node}")
    form = vertex.returns if run.kind == StepKind.ITEM else vertex.result_type
    if run.kind == StepKind.UNDO:
        form = Any  # nothing reads it
    try:
        result = decode(form, result_json)
        return result, encode_as(form, result)
    except InvalidMessage as mistake:
        raise OperationRefused(f"this is no result of {run.node}: {mistake}") from None


def _followed(run: StepRun, go_on: Callable[[], None]) -> None:
    """Carries out what follows; a predicate that cannot cope with what the operator gave refuses it.

    Raises:
        OperationRefused: the process cannot go on with it.
    """
    try:
        go_on()
    except (DatabaseError, LeaseLost):
        raise
    except Exception as error:
        raise OperationRefused(
            f"the process cannot go on from {run.node} with this: {error}"
        ) from error


def _forget_trouble(change: WorkflowChange, run: StepRun, by: str) -> None:
    if run.status == StepStatus.FAILED:
        retry.revive(change, run.node)
    if run.error:
        change.mark(incidents.resolved(by, change.now, step_run_id=run.pk))
