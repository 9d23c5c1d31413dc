"""Invariants of live processes: each waits for something that will come, or has an open incident."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from orchestrator.containers import group_by_key
from orchestrator.definition import ProcessManager
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.invariants.stored_sets import WHOLE, StoredPart, pages_by_key
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    Blocked,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.models.process_instance import ProcessInstanceQuerySet

WORKFLOW = Definition.Kind.WORKFLOW
AT_ONCE = 200
"""Joins that are checked together."""


def progress(part: StoredPart = WHOLE) -> Iterator[str]:
    """I4: every live process waits for work, an event, a deadline, a retry or a person."""
    live = part.processes().live()
    yield from wrong_steps(part.processes())
    told = Incident.objects.open().filter(instance=OuterRef("pk"))
    for instance in live.filter(status="failed").exclude(Exists(told))[:20]:
        yield f"{instance.pk} has failed, but no incident tells of it"
    for instance in _retrying_nothing(live)[:20]:
        yield f"{instance.pk} is retrying but nothing will be tried again"
    yield from _resting(part)
    yield from _reasons(part)


def wrong_steps(some: ProcessInstanceQuerySet) -> Iterator[str]:
    """Yield processes with a wrong number of open visits, or a visit of another step than their own."""
    visits = StepRun.objects.filter(instance=OuterRef("pk"), finished_at=None)
    for instance in some.live().exclude(Exists(visits))[:20]:
        yield f"{instance.pk} has not ended but stands in no step"
    for instance in some.ended().filter(Exists(visits))[:20]:
        yield f"{instance.pk} has ended but stands in a step"
    managed = some.filter(definition__kind=ProcessManager.kind)
    runs = StepRun.objects.filter(finished_at=None, instance__in=managed)
    for run in runs.exclude(node=F("instance__step"))[:20]:
        yield f"{run.instance_id} waits in {run.node}, which is not its step"
    several = runs.values("instance_id").annotate(open=Count("id"))
    for row in several.filter(open__gt=1)[:20]:
        yield f"{row['instance_id']} stands in {row['open']} steps"
    number = visits.order_by().values("instance").annotate(n=Count("pk")).values("n")
    counted = some.filter(definition__kind=WORKFLOW)
    counted = counted.annotate(found=Coalesce(Subquery(number), 0))
    for instance in counted.exclude(open_steps=F("found"))[:20]:
        yield f"{instance.pk} counts {instance.open_steps} open steps, but has {instance.found}"


def _resting(part: StoredPart) -> Iterator[str]:
    """Rows with remaining time belong to paused processes, and paused processes have the status paused."""
    said, since = Q(status="paused"), Q(paused_at__isnull=False)
    for instance in part.processes().live().filter(said ^ since)[:20]:
        yield f"{instance.pk} is {instance.status}, but paused at {instance.paused_at}"
    for ended in part.processes().ended().filter(since)[:20]:
        yield f"{ended.pk} has ended but is paused"
    runs = part.of(StepRun.objects.filter(finished_at=None))
    runs = runs.filter(instance__paused_at=None)
    for run in runs.filter(remaining__isnull=False)[:20]:
        yield f"{_at(run)} rests, but its process goes on"
    waiting = Q(verdict="received") | Q(verdict="parked")
    events = part.of(InboxEvent.objects.filter(waiting), "process")
    events = events.filter(remaining__isnull=False)
    for event in events.exclude(process__paused_at__isnull=False)[:20]:
        yield f"event {event.pk} rests, but its process goes on"


def _retrying_nothing(live: ProcessInstanceQuerySet) -> ProcessInstanceQuerySet:
    again = {"wake_at__isnull": False}
    pending = (
        IssuedCommand.objects.filter(instance=OuterRef("pk"), **again),
        InboxEvent.objects.filter(process=OuterRef("pk"), **again),
        StepRun.objects.filter(instance=OuterRef("pk"), **again),
    )
    found = live.filter(status="retrying")
    for rows in pending:
        found = found.exclude(Exists(rows.exclude(error="")))
    return found


# Workflows


def _open(part: StoredPart) -> QuerySet[StepRun]:
    """The open visits of workflows that are not paused."""
    runs = part.of(StepRun.objects.filter(finished_at=None))
    return runs.filter(instance__paused_at=None, instance__definition__kind=WORKFLOW)


def _reasons(part: StoredPart) -> Iterator[str]:
    """A worker will run each open visit, or something open will wake it."""
    asleep = _open(part).filter(wake_at=None)
    unrun = asleep.filter(status__in=WORK)
    for run in unrun[:20]:
        yield f"{_at(run)} is {run.status}, but nothing will run it"
    told = Incident.objects.open().filter(step_run_id=OuterRef("pk"))
    for run in asleep.filter(status=StepStatus.FAILED).exclude(Exists(told))[:20]:
        yield f"{_at(run)} has failed, but no incident tells of it"
    waiting = asleep.filter(status=StepStatus.WAITING)
    for run in waiting.exclude(_has_a_waker())[:20]:
        yield f"{_at(run)} waits, but nothing will wake it"
    yield from _cut_off(waiting.filter(kind=StepKind.JOIN))
    for run in _open(part).filter(status__in=OVER)[:20]:
        yield f"{_at(run)} is {run.status}, but was never settled"


WORK = (StepStatus.READY, StepStatus.RUNNING, StepStatus.RETRYING)
OVER = (StepStatus.DONE, StepStatus.SKIPPED, StepStatus.NOT_TAKEN, StepStatus.CANCELLED)
OUTSIDE = (StepKind.WAIT, StepKind.ASK, StepKind.JOIN)


def _has_a_waker() -> Q:
    """The condition that a visit without a due time has something that wakes it. `_cut_off` checks joins."""
    redone = _beside(node=OuterRef("blocked_on"), redo=True)
    item = {"node": OuterRef("node"), "kind": StepKind.ITEM}
    items = _beside(**item, visit=OuterRef("visit"))
    under_way = items.exclude(status=StepStatus.WAITING, blocked="", child=None)
    undone = _beside(kind=StepKind.UNDO).exclude(status=StepStatus.WAITING)
    child = ProcessInstance.objects.live().filter(pk=OuterRef("child"))
    return (
        Q(kind__in=OUTSIDE, blocked="")
        | Q(Exists(redone), blocked=Blocked.REDO)
        | Q(Exists(items), kind=StepKind.MAP)
        | Q(Exists(under_way), kind=StepKind.ITEM, blocked="")
        | Q(Exists(undone), kind=StepKind.UNDO, blocked="")
        | Q(Exists(child), kind__in=[StepKind.RUN, StepKind.ITEM], blocked="")
    )


def _beside(**conditions: Any) -> QuerySet[StepRun]:
    """Other open runs of the same process."""
    others = StepRun.objects.filter(
        instance=OuterRef("instance"), finished_at=None, **conditions
    )
    return others.exclude(pk=OuterRef("pk"))


def _cut_off(joins: QuerySet[StepRun]) -> Iterator[str]:
    """Joins without an open visit before them: no branch will arrive there."""
    rows = joins.select_related("instance__definition")
    for page in pages_by_key(rows.defer("instance__definition__graph"), AT_ONCE):
        instances = {run.instance_id: run.instance for run in page}
        active = StepRun.objects.filter(finished_at=None, instance__in=list(instances))
        active = active.exclude(kind=StepKind.JOIN).order_by().distinct()
        nodes = group_by_key(active.values_list("instance_id", "node"))
        reached: dict[UUID, set[str]] = {}
        for pk, instance in instances.items():
            # If the running code has no plan for a process, `model` reports it.
            with suppress(Exception):
                reached[pk] = _reached(definitions.plan_of(instance), nodes[pk])
        for run in page:
            if run.node not in reached.get(run.instance_id, {run.node}):
                yield f"{_at(run)} waits for its branches, but none is open"


def _reached(plan: Plan, active: Iterable[str]) -> set[str]:
    """The steps after the active steps, directly or through other steps."""
    waiting = list(active)
    found: set[str] = set()
    while waiting:
        vertex = plan.vertices.get(waiting.pop())
        steps = vertex.loop.steps if vertex is not None and vertex.loop else ()
        links = vertex.links if vertex is not None else ()
        following = {*steps, *(link.target for link in links)} - found
        found |= following
        waiting += following
    return found


def _at(run: StepRun) -> str:
    return f"{run.node} of {run.instance_id}"
