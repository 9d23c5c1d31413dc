"""Skip the failed step: a person gives the result of the failed step in each of many processes, and they continue."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.circumstances import Circumstances
from orchestrator.engine.operations.outcomes import retry_outcomes
from orchestrator.engine.operations.process import ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.visits.skip import skip
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Status, StepKind, StepStatus
from orchestrator.text import Text

NO_STEP = Text("No step of it has failed")
SEVERAL = Text("Several of its steps have failed: skip them one by one")


class SkipFailedStep(ProcessOperation):
    """Skips the one failed step of a workflow; a bulk operation gives many processes the same result.

    A process with several failed steps, or without one, refuses it: one result does not fit different steps.
    """

    name = "skip_failed"
    label = _("Skip the failed step")
    done = _("Skipped.")
    may = skip.may
    text = _(
        "Ends the step that failed with the result you give, and the process goes on with it. A result that is none of "
        "that step is refused; a process of which several steps have failed is left as it is."
    )
    given = (Given("json", "json", _("Result, as JSON"), lambda instance: None),)
    in_bulk = True
    of_workflows = True
    permitted_as = skip.codename

    def obstacle(self, process: Circumstances) -> str:
        return "" if process.instance.status == Status.FAILED else NO_STEP

    outcomes = staticmethod(retry_outcomes)

    def effect(self, press: Press, result_json: Any) -> dict[str, Any] | None:
        rows = press.process.step_runs.filter(
            status=StepStatus.FAILED, finished_at=None
        )
        failed = list(rows.exclude(kind=StepKind.MAP).values_list("pk", flat=True)[:2])
        if len(failed) != 1:
            raise OperationRefused(SEVERAL if failed else NO_STEP)
        return skip.effect(press, failed[0], result_json)


skip_failed = register(SkipFailedStep())
