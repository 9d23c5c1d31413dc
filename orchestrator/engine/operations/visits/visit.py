"""Finding an open visit of a step, settling it, and continuing from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import Error as DatabaseError
from django.db import connection

from orchestrator.engine.change import incidents
from orchestrator.engine.change.workflows import retrying, settling
from orchestrator.engine.change.workflows.workflow_change import (
    WorkflowChange,
    cancel_child,
)
from orchestrator.engine.sql.connection import is_aborted
from orchestrator.engine.storage.application_code.errors import from_engine
from orchestrator.engine.storage.results import seal_result
from orchestrator.exceptions import LeaseLost, OperationRefused, StaleRevision
from orchestrator.models import ProcessInstance, StepRun, StepStatus
from orchestrator.text import Text

BROKEN = Text(
    "a statement of its condition has failed, and the transaction can only be rolled back"
)
"""The reason of a refusal after which nothing can be read that would tell the secrets in an error's text."""


def find_open_visit(instance: ProcessInstance, pk: int) -> StepRun:
    """Return an open visit of a process.

    Raises:
        OperationRefused: the process has no such visit, or the visit has ended.
    """
    run = StepRun.objects.filter(instance=instance, pk=pk).first()
    if run is None:
        raise OperationRefused("the process has no step run %(key)s", pk)
    if run.finished_at is not None:
        raise StaleRevision(
            "%(step)s is over meanwhile: %(status)s", run.node, run.status
        )
    return run


def follow_or_refuse(run: StepRun, go_on: Callable[[], None]) -> None:
    """Continue from a visit with the operator's value; turn the error of a predicate into a refusal.

    Raises:
        OperationRefused: the process cannot continue with the value.
    """
    try:
        go_on()
    except BaseException as error:
        if from_engine(error, (DatabaseError, LeaseLost)):
            raise
        # The secrets of the data are not known in a transaction in which nothing can be read.
        why = BROKEN if is_aborted(connection) else incidents.conditional_error(error)
        raise OperationRefused(
            "the process cannot go on from %(step)s with this: %(why)s", run.node, why
        ) from error


def clear_failure(change: WorkflowChange, run: StepRun, by: Text) -> None:
    """Revive the visits that the failure of an open visit has cancelled, and resolve its incident."""
    if run.status == StepStatus.FAILED:
        retrying.revive(change, run.node)
    if run.error:
        change.mark(incidents.resolve(by, change.now, step_run_id=run.pk))


def skip_visit(change: WorkflowChange, run: StepRun, result: Any, body: Any) -> None:
    """Settle an open visit with the result that a person gives, and continue from it."""
    clear_failure(change, run, Text("skipped by an operator"))
    change.close_open(run, StepStatus.SKIPPED, **seal_result(body))
    if run.child_id is not None:
        cancel_child(run, change)
    follow_or_refuse(
        run, lambda: settling.follow(change, run, result, StepStatus.SKIPPED)
    )
