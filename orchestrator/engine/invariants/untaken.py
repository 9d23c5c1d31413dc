"""What must hold of parked events: none lies that the present step of its process would take."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.db.models import Exists, OuterRef

from orchestrator.definition import ProcessManager
from orchestrator.definition.codec import decode
from orchestrator.engine import inbox
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    InboxEvent,
    ProcessInstance,
    StepKind,
    StepStatus,
    Verdict,
)
from orchestrator.models.inbox_event import UNDECIDED


def untaken() -> Iterator[str]:
    """Gives a finding for each process that goes on, has no event under way, and would take one that is parked."""
    rows = InboxEvent.objects.filter(
        verdict=Verdict.PARKED,
        handled_at__isnull=False,
        process__finished_at=None,
        process__paused_at=None,
    ).exclude(Exists(_under_way()))
    parked = rows.select_related("process").order_by("process_id", "id").iterator(500)
    for _, events in groupby(parked, key=lambda event: event.process_id):
        yield from _of_process(events)


def _under_way() -> Any:
    """Events that are yet to be decided: those of their process that are parked are offered after them."""
    return InboxEvent.objects.filter(UNDECIDED, process=OuterRef("process"))


def _of_process(events: Iterator[InboxEvent]) -> Iterator[str]:
    process: ProcessInstance | None = None
    for event in events:
        process = process or event.process
        try:
            taken = process is not None and _takes(process, event)
        except Exception:  # noqa: BLE001  # the running code cannot tell: `model` says so
            return
        if taken:
            yield f"event {event.pk} is parked, but {process.step} of {process.pk} takes {event.type}"  # type: ignore[union-attr]  # it is there
            return


def _takes(process: ProcessInstance, event: InboxEvent) -> bool:
    """Whether an event would move the process as it stands."""
    definition = definitions.definition_of(process)
    if issubclass(definition, ProcessManager):
        data = decode(definition.Data, process.data)
        message = inbox.read(event.type, event.body)
        step = definition.Step(process.step)
        return definition.decide(step, data, message).outcome != "parked"
    plan = definitions.plan_of(process)
    waiting = process.step_runs.filter(kind=StepKind.WAIT, status=StepStatus.WAITING)
    steps = [plan[node].step for node in waiting.values_list("node", flat=True)]
    # What a step wants of an event beside its type may depend on results; that is not asked here.
    kinds = [step.event for step in steps if not step.guards and not step.predicates]
    return any(kind is not None and kind.__name__ == event.type for kind in kinds)
