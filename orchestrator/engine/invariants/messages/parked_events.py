"""The invariant of parked events: the present step of a process takes none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from orchestrator.containers import group_by_key
from orchestrator.definition import ProcessManager
from orchestrator.definition.codec import decode
from orchestrator.engine.invariants.stored_sets import ProcessSet
from orchestrator.engine.storage import definitions, inbox
from orchestrator.exceptions import UnknownEventType
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
    """I4: a live process without an undecided event takes none of its parked events."""
    # The query names the processes: in a join, a planner without statistics would read all events for each process.
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
            except UnknownEventType:
                continue  # it waits for the code that has its type
            except BaseException:  # noqa: BLE001  # the running code cannot decide: `model` reports it
                break
            if taken:
                yield f"event {event.pk} is parked, but {process.step} of {process.pk} takes {event.type}"
                break


def _with_events_under_way(some: ProcessSet) -> set[UUID]:
    """The processes with undecided events. The engine offers parked events after these."""
    under_way = some.of(InboxEvent.objects.filter(UNDECIDED), "process").order_by()
    return set(under_way.values_list("process", flat=True).distinct())


def _waiting(some: ProcessSet) -> Mapping[UUID, list[str]]:
    """The steps that wait for an event, by process."""
    waiting = StepRun.objects.filter(kind=StepKind.WAIT, status=StepStatus.WAITING)
    return group_by_key(some.of(waiting).values_list("instance_id", "node"))


def _takes(process: ProcessInstance, event: InboxEvent, waiting: Iterable[str]) -> bool:
    """Return whether the present step of a process takes an event."""
    definition = definitions.definition_of(process)
    if issubclass(definition, ProcessManager):
        data = decode(definition.Data, process.data)
        message = inbox.parse_event(event.type, event.body)
        step = definition.Step(process.step)
        return definition.decide(step, data, message).outcome != "parked"
    plan = definitions.plan_of(process)
    steps = [plan[node].step for node in waiting]
    # Guards and predicates of a step may depend on results. This check leaves out such steps.
    kinds = [step.event for step in steps if not step.guards and not step.predicates]
    return any(kind is not None and kind.__name__ == event.type for kind in kinds)
