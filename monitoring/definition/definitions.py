"""The numbers of a definition's processes by status."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import F

from monitoring.queries.counts import CAP, Capped, count_by, count_each
from orchestrator.models import ProcessInstance, Status
from orchestrator.models.process_instance import (
    LIVE,
    NEWEST_FIRST,
    ProcessInstanceQuerySet,
)

SHOWN = (Status.RUNNING, Status.WAITING, Status.RETRYING, Status.FAILED, Status.PAUSED)


@dataclass(frozen=True)
class StatusCounts:
    """The numbers of processes of one definition.

    Args:
        statuses: by status, in the order of the page; without a zero of paused ones.
        escalated: the number of escalated ones.
    """

    statuses: dict[str, Capped]
    escalated: Capped


EACH = 10
"""The maximum number of stored rows that are counted one by one; more are counted among all processes."""


def status_counts(name: str, of: Collection[int] | None = None) -> StatusCounts:
    """Return the counts of one definition, or of some of its stored rows, by key."""
    rows = ProcessInstance.objects.filter(name=name)
    live = _by_status(rows, of)
    every, escalated = _completed_processes(name), rows.escalated()
    parts = {"completed": every, "escalated": escalated}
    if of is not None:
        mine = escalated.filter(definition__in=of)
        parts = {"completed": _only(every, of), "escalated": mine, "every": every}
    found = count_each(parts, {"completed": CAP, "every": CAP})
    shown = {one: live[one] for one in SHOWN if one != Status.PAUSED or live[one]}
    completed = found["completed"]
    more = completed.at_least or (of is not None and found["every"].at_least)
    shown[Status.COMPLETED] = Capped.of(completed.number, more=more)
    return StatusCounts(
        {str(one): number for one, number in shown.items()}, found["escalated"]
    )


def _by_status(
    rows: ProcessInstanceQuerySet, of: Collection[int] | None
) -> dict[Status, Capped]:
    """Count live processes by status; a large status does not hide a small one."""
    live = rows.live().order_by("name", "status", *NEWEST_FIRST)
    named = {str(status): live.filter(status=status) for status in LIVE}
    parts = _live_parts(named, of)
    if of:
        parts = [part.annotate(row=F("definition")) for part in parts]
    numbers, full = defaultdict[str, int](int), set[str]()
    fields = ["row", "status"] if of else ["status"]
    for *_, status, number in count_by(parts, *fields, cap=CAP):
        numbers[status] += number
        if number >= CAP:
            full.add(status)
    if of is not None and len(of) > EACH:
        unsure = count_each(named, dict.fromkeys(named, CAP))
        full |= {name for name, one in unsure.items() if one.at_least}
    return {one: Capped.of(numbers[one], more=one in full) for one in LIVE}


def _live_parts(
    named: Mapping[str, ProcessInstanceQuerySet], of: Collection[int] | None
) -> list[ProcessInstanceQuerySet]:
    """Return the queries for the live processes of all rows of a name, or of some rows."""
    if of is None:
        return list(named.values())
    if len(of) > EACH:
        return [_only(some, of) for some in named.values()]
    each = [ProcessInstance.objects.live_on(row) for row in of]
    found = [one.filter(status=status) for one in each for status in LIVE]
    return [one.order_by("definition", "status", *NEWEST_FIRST) for one in found]


def _completed_processes(name: str) -> ProcessInstanceQuerySet:
    """Return completed processes, newest first along an index, which stops at a cap."""
    # A range of one value: PostgreSQL would otherwise scan all processes.
    rows = ProcessInstance.objects.filter(name__range=(name, name))
    return rows.filter(status=Status.COMPLETED).order_by("name", *NEWEST_FIRST)


def _only(
    rows: ProcessInstanceQuerySet, of: Collection[int]
) -> ProcessInstanceQuerySet:
    """Limit the first rows to some stored definitions."""
    first = ProcessInstance.objects.filter(pk__in=rows.values("pk")[:CAP])
    return first.filter(definition__in=of)
