"""Skip: a person gives the result of a step, and the process continues."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.definition.codec import decode, encode_as
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.visits.visit import find_open_visit, skip_visit
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.text import Text


class SkipStep(ProcessOperation):
    """Skips an open visit, or one element of a map, with a given result.

    The result is read as strictly as the step's own.
    """

    name = "skip"
    label = _("Skip")
    done = _("Skipped.")
    may = _("Can skip a step")
    text = _(
        "Ends this step with the result you give, and the process goes on with it."
    )
    given = (Given("json", "json", _("Result, as JSON"), lambda instance: None),)
    on_step = True
    of_workflows = True

    def obstacle(self, process: Circumstances) -> str:
        return "" if process.can_be_skipped else Text("No step is open")

    def effect(
        self, press: Press, step_run_pk: int, result_json: Any
    ) -> dict[str, Any]:
        run = find_open_visit(press.process, step_run_pk)
        check_can_be_skipped(run)
        change = WorkflowChange.of(press.process, press.cause, press.now)
        result, body = read_result(change, run, result_json)
        skip_visit(change, run, result, body)
        change.write()
        return {"skipped": {run.node: body}}


skip = register(SkipStep())


def check_can_be_skipped(run: StepRun) -> None:
    """Check that a person can skip a visit.

    Raises:
        OperationRefused: the visit has not begun, runs now, or stands for a whole map.
    """
    if run.kind == StepKind.JOIN:
        raise OperationRefused(
            "%(step)s has not begun: it waits for the steps before it, skip those",
            run.node,
        )
    if run.kind == StepKind.MAP:
        raise OperationRefused(
            "%(step)s stands for all its elements: skip those that hold it up, one by one",
            run.node,
        )
    if run.status == StepStatus.RUNNING:
        raise OperationRefused(
            "%(step)s is running, in attempt %(number)s: wait for its end",
            run.node,
            run.attempt,
        )


def result_form(vertex: Vertex, run: StepRun) -> Any:
    """Return the type of a visit's result; for an element of a map the type of one element."""
    return vertex.returns if run.kind == StepKind.ITEM else vertex.result_type


def read_result(
    change: WorkflowChange, run: StepRun, result_json: Any
) -> tuple[Any, Any]:
    """Return the result that an operator gives, as a value of the step's type and as JSON values.

    Raises:
        OperationRefused: the result is not of that type; the message has the path of the mistake.
    """
    vertex = change.plan.vertices.get(run.node)
    if vertex is None:
        raise OperationRefused("the running code has no step %(step)s", run.node)
    # No step reads the result of an undo.
    form = Any if run.kind == StepKind.UNDO else result_form(vertex, run)
    try:
        result = decode(form, result_json)
        return result, encode_as(form, result)
    except InvalidMessage as mistake:
        raise OperationRefused(
            "this is no result of %(step)s: %(why)s", run.node, mistake
        ) from None
