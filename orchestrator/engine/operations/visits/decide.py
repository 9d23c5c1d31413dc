"""Decide: a person makes the choice that a workflow asks for."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.visits.visit import (
    clear_failure,
    find_open_visit,
    follow_or_refuse,
)
from orchestrator.engine.steps import waiting_steps
from orchestrator.engine.storage.definitions import plan_of
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, StepKind, StepRun
from orchestrator.text import Text


class DecideStep(ProcessOperation):
    """Gives an open question its answer; the process continues with the choice."""

    name = "decide"
    label = _("Decide")
    done = _("Decided.")
    may = _("Can decide for a process")
    text = _("The process goes on with this decision.")
    given = (Given("choice", "text"),)
    on_step = True
    reason_by_target = True
    of_workflows = True

    def __call__(self, key: Any, *given: Any, request: ActionRequest) -> OperatorAction:
        if _needs_reason(key, given[0]):
            self._check_reason(request)  # before the key of the request is used up
        return super().__call__(key, *given, request=request)

    def obstacle(self, process: Circumstances) -> str:
        return "" if process.asks else Text("No step asks for a decision")

    def effect(self, press: Press, step_run_pk: int, choice: str) -> dict[str, Any]:
        run = find_open_visit(press.process, step_run_pk)
        if run.kind != StepKind.ASK:
            raise OperationRefused("%(step)s does not ask for a decision", run.node)
        change = WorkflowChange.of(press.process, press.cause, press.now)
        question = change.plan[run.node].step.question
        if question is None or question.needs_reason:
            self._check_reason(press.request)
        clear_failure(change, run, Text("decided by an operator"))
        follow_or_refuse(run, lambda: waiting_steps.settle_choice(change, run, choice))
        change.write()
        return {"decided": {run.node: choice}}


def _needs_reason(process: Any, step_run_pk: int) -> bool:
    """Whether a question needs a reason, as far as that can be read without a lock."""
    rows = StepRun.objects.filter(instance=process, pk=step_run_pk)
    run = rows.select_related("instance").first()
    if run is None:
        return False
    try:
        question = plan_of(run.instance)[run.node].step.question
    except Exception:  # noqa: BLE001  # the action tells it
        return False
    return question is None or question.needs_reason


decide = register(DecideStep())
