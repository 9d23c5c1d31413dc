"""Extend: postpones the next deadline of a step, and the deadlines after it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.visits.visit import find_open_visit
from orchestrator.engine.sql.tables import step_runs
from orchestrator.exceptions import OperationRefused
from orchestrator.models import StepKind, StepRun

MOST_MINUTES = 525_600
"""A year."""

WITH_DEADLINES = ("", StepKind.WAIT, StepKind.ASK)
"""The kinds of visits with deadlines; visits of process managers have no kind."""


class ExtendDeadline(ProcessOperation):
    """Postpones the next deadline of an open visit, and the deadlines after it; an overdue deadline counts from now."""

    name = "extend"
    label = _("Extend deadline")
    done = _("The deadline is later now.")
    may = _("Can extend a deadline")
    text = _(
        "The next deadline of this step, and those after it, pass so much later. The process goes on as before."
    )
    icon = "waiting"
    given = (Given("minutes", "number", _("Minutes more"), lambda instance: 60),)
    on_step = True
    rank = 60

    def effect(self, press: Press, step_run_pk: int, minutes: int) -> dict[str, Any]:
        run = find_open_visit(press.process, step_run_pk)
        _check(run, minutes)
        later = timedelta(minutes=minutes)
        values: dict[str, Any] = {}
        if run.wake_at is not None:
            values["wake_at"] = max(run.wake_at, press.now) + later
            later = values["wake_at"] - run.wake_at
        else:
            values["remaining"] = (run.remaining or timedelta(0)) + later
        values["extended"] = (run.extended or timedelta(0)) + later
        # The condition fails if a worker has claimed the visit this moment.
        same = {"id": run.pk, "finished_at": None, "owner": "", "wake_at": run.wake_at}
        change = ProcessChange(press.process, press.cause, press.now)
        change.mark(step_runs.update(values, same))
        change.write()
        return {"extended": {run.node: _bounds(run, values)}}


extend = register(ExtendDeadline())


def _check(run: StepRun, minutes: int) -> None:
    """Checks that a visit has a deadline ahead.

    Raises:
        OperationRefused: the visit has no deadline ahead, or the minutes are out of bounds.
    """
    if not 1 <= minutes <= MOST_MINUTES:
        raise OperationRefused(
            "extend it by 1 to %(most)s minutes", f"{MOST_MINUTES:,}"
        )
    waits = run.wake_at is not None or run.remaining is not None
    if run.kind not in WITH_DEADLINES or not waits:
        raise OperationRefused("%(step)s has no deadline ahead", run.node)
    if run.owner or run.error:
        raise OperationRefused("the deadline of %(step)s has passed already", run.node)


def _bounds(run: StepRun, values: dict[str, Any]) -> dict[str, str]:
    """The deadline before and after; of a paused process the time that is left."""
    if run.wake_at is None:
        return {"left": str(values["remaining"])}
    return {"from": run.wake_at.isoformat(), "until": values["wake_at"].isoformat()}
