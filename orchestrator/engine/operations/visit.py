"""Reading, skipping and following an open visit of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import Error as DatabaseError

from orchestrator.engine.change import incidents, retrying, settling
from orchestrator.engine.change.workflow import WorkflowChange, cancel_child
from orchestrator.engine.storage.results import sealed
from orchestrator.exceptions import LeaseLost, OperationRefused, StaleRevision
from orchestrator.models import ProcessInstance, StepRun, StepStatus
from orchestrator.text import Text


def open_run(instance: ProcessInstance, pk: int) -> StepRun:
    """An open visit of a process.

    Raises:
        OperationRefused: there is no such visit in it, or it is over.
    """
    run = StepRun.objects.filter(instance=instance, pk=pk).first()
    if run is None:
        raise OperationRefused("the process has no step run %(key)s", pk)
    if run.finished_at is not None:
        raise StaleRevision(
            "%(step)s is over meanwhile: %(status)s", run.node, run.status
        )
    return run


def followed(run: StepRun, go_on: Callable[[], None]) -> None:
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
            "the process cannot go on from %(step)s with this: %(why)s",
            run.node,
            incidents.said(error),
        ) from error


def forget_trouble(change: WorkflowChange, run: StepRun, by: Text) -> None:
    if run.status == StepStatus.FAILED:
        retrying.revive(change, run.node)
    if run.error:
        change.mark(incidents.resolved(by, change.now, step_run_id=run.pk))


def skip_run(change: WorkflowChange, run: StepRun, result: Any, body: Any) -> None:
    """Settles an open visit with what a person gives in the place of its result, and carries out what follows."""
    forget_trouble(change, run, Text("skipped by an operator"))
    change.close_open(run, StepStatus.SKIPPED, **sealed(body))
    if run.child_id is not None:
        cancel_child(run, change)
    followed(run, lambda: settling.follow(change, run, result, StepStatus.SKIPPED))
