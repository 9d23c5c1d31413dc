"""The visits of a process manager's steps as the page lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from monitoring.queries.instance.diagram import current_status
from monitoring.queries.timeouts import Timeout, timeouts_of
from orchestrator.models import ProcessInstance, StepRun


@dataclass(frozen=True)
class VisitRow:
    """One stay in a step."""

    run: StepRun
    label: str
    duration: timedelta
    open: bool
    status: str


def visit_row(
    run: StepRun,
    labels: Mapping[str, str],
    instance: ProcessInstance,
    now: datetime | None = None,
) -> VisitRow:
    is_open = run.finished_at is None
    duration = (run.finished_at or now or timezone.now()) - run.started_at
    status = current_status(instance, run.status) if is_open else run.status
    return VisitRow(run, labels.get(run.node, run.node), duration, is_open, status)


def is_past(run: StepRun) -> bool:
    """Whether a visit's deadline is being carried out, or could not be: what it waits for then is no deadline."""
    return bool(run.owner or run.error)


def timeouts_now(
    run: StepRun | None, instance: ProcessInstance, labels: Mapping[str, str]
) -> Sequence[Timeout]:
    """The deadlines of the visit in which a process is now; none at its end."""
    if run is None or instance.finished_at is not None:
        return ()
    return list(timeouts_of(run, instance, labels, run.error))
