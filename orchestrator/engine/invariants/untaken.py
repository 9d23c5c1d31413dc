"""Checks parked events: the present step of a process takes none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from orchestrator.collecting import group_by_key
from orchestrator.definition import ProcessManager
from orchestrator.definition.codec import decode
from orchestrator.engine import inbox
from orchestrator.engine.invariants.reading import ProcessSet
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    InboxEvent,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.models.inbox_event import UNDECIDED


def parked(some: ProcessSet) -> Iterator[str]:
    """I4: no process that goes on and has no event under way would take one that is parked."""
    # The processes are known here: joined with them, a planner without statistics looks through all events for each.
    busy = _with_events_under_way(some)
    going_on = [
        process.pk
        for process in some.processes
        if not process.finished_at and not process.paused_at and process.pk not in busy
    ]
    mine = InboxEvent.objects.filter(
        verdict=Verdict.PARKED, handled_at__isnull=False, process__in=going_on
    )
    parked = group_by_key((event.process_id, event) for event in mine.order_by("id"))
    if not parked:
        return
    waiting = _waiting(some)
    for process in some.processes:
        for event in parked.get(process.pk, ()):
            try:
                taken = _takes(process, event, waiting[process.pk])
            except Exception:  # noqa: BLE001  # the running code cannot tell: `model` says so
                break
            if taken:
                yield f"event {event.pk} is parked, but {process.step} of {process.pk} takes {event.type}"
                break


def _with_events_under_way(some: ProcessSet) -> set[UUID]:
    """The processes with events that are yet to be decided: those that are parked are offered after them."""
    under_way = some.of(InboxEvent.objects.filter(UNDECIDED), "process").order_by()
    return set(under_way.values_list("process", flat=True).distinct())


def _waiting(some: ProcessSet) -> Mapping[UUID, list[str]]:
    """The steps of each workflow that wait for an event."""
    waiting = StepRun.objects.filter(kind=StepKind.WAIT, status=StepStatus.WAITING)
    return group_by_key(some.of(waiting).values_list("instance_id", "node"))


def _takes(process: ProcessInstance, event: InboxEvent, waiting: Iterable[str]) -> bool:
    """Whether an event would move the process as it stands."""
    definition = definitions.definition_of(process)
    if issubclass(definition, ProcessManager):
        data = decode(definition.Data, process.data)
        message = inbox.parse_event(event.type, event.body)
        step = definition.Step(process.step)
        return definition.decide(step, data, message).outcome != "parked"
    plan = definitions.plan_of(process)
    steps = [plan[node].step for node in waiting]
    # What a step wants of an event beside its type may depend on results; that is not asked here.
    kinds = [step.event for step in steps if not step.guards and not step.predicates]
    return any(kind is not None and kind.__name__ == event.type for kind in kinds)
