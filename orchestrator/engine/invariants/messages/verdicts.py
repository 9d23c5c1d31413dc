"""Invariants of what identifies processes, and of events that moved nothing."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Exists, F, OuterRef

from orchestrator import registry
from orchestrator.containers import group_by_key
from orchestrator.definition import Workflow
from orchestrator.definition.declarations.outside_ids import Identifier, identifiers
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.invariants.stored_sets import WHOLE, ProcessSet, StoredPart
from orchestrator.engine.storage import definitions
from orchestrator.models import InboxEvent, OperatorAction, OutsideId, Verdict


def discarded(part: StoredPart = WHOLE) -> Iterator[str]:
    """I8: a person has discarded each discarded event."""
    by = OperatorAction.objects.filter(
        event=OuterRef("pk"), action="discard", result="done"
    )
    events = part.of(InboxEvent.objects.filter(verdict=Verdict.DISCARDED), "process")
    for event in events.exclude(Exists(by))[:20]:
        yield f"event {event.pk} is discarded, but no person has discarded it"


def ignored(some: ProcessSet) -> Iterator[str]:
    """I1: the flow of a workflow ignores each event that is ignored. `model` asks this of process managers."""
    rows = InboxEvent.objects.filter(verdict=Verdict.IGNORED)
    read = some.of(rows, "process").order_by().values_list("process_id", "pk", "type")
    found = group_by_key((process, (pk, kind)) for process, pk, kind in read)
    for process in some.processes:
        events = found.get(process.pk)
        if not events or some.switches[process.pk]:
            continue
        try:
            if not issubclass(definitions.definition_of(process), Workflow):
                continue
            dropped = _dropped(definitions.plan_of(process))
        except Exception:  # noqa: BLE001, S112  # the running code has no plan for it: `model` reports it
            continue
        for pk, kind in events:
            if registry.current_name(kind) not in dropped:
                yield f"event {pk} is ignored, but no step of {process.pk} ignores {kind}"


def _dropped(plan: Plan) -> set[str]:
    """The types of events that a workflow may ignore."""
    said = (vertex.step for vertex in plan.vertices.values())
    waits = {one.event for one in said if one.event is not None and one.otherwise}
    return {one.__name__ for one in (*plan.ignored, *waits)}


def keys(part: StoredPart = WHOLE) -> Iterator[str]:
    """I10: a process has the business key of the event that started it, or an empty one of an early release."""
    started = part.of(InboxEvent.objects.filter(verdict=Verdict.STARTED), "process")
    other = started.exclude(correlation_key=F("process__correlation_key"))
    other = other.filter(process__isnull=False).exclude(process__correlation_key="")
    for event in other[:20]:
        yield f"event {event.pk} has started {event.process_id} with another key than it has"


def stale_ids(some: ProcessSet) -> Iterator[str]:
    """I10: each outside id is in the data of its process.

    The code may have declared a field later than it stored the data, so the data may have more ids.
    """
    rows = some.of(OutsideId.objects.all()).order_by()
    read = rows.values_list("instance_id", "field", "value")
    stored = group_by_key((process, Identifier(*row)) for process, *row in read)
    for process in some.processes:
        if process.pk not in stored or not isinstance(process.data, dict):
            continue
        try:
            names = definitions.definition_of(process).outside_ids
        except Exception:  # noqa: BLE001, S112  # the running code lacks it: `model` reports it
            continue
        there = identifiers(names, process.data)
        for one in stored[process.pk]:
            if one.field in names and one not in there:
                yield f"{process.pk} is found by the {one.field} {one.value!r}, which its data lacks"
