"""The counts of a definition's processes."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import F

from monitoring.queries.counts import CAP, Capped, counted, each_capped, grouped
from orchestrator.models import ProcessInstance, Status
from orchestrator.models.process_instance import LIVE, ProcessInstanceQuerySet

SHOWN = (
    Status.RUNNING,
    Status.WAITING,
    Status.RETRYING,
    Status.FAILED,
    Status.PAUSED,
)


@dataclass(frozen=True)
class Counts:
    """The numbers of processes of one definition.

    Args:
        statuses: by status, in the order of the page; without a zero of paused ones.
        escalated: the number of escalated ones.
    """

    statuses: dict[str, Capped]
    escalated: Capped


EACH = 10
"""The maximum number of stored rows that are counted one by one; more are counted among all processes."""


def counts_of(name: str, of: Collection[int] | None = None) -> Counts:
    """Return the counts of one definition, or of some of its stored rows, by key."""
    rows = ProcessInstance.objects.filter(name=name)
    live = _by_status(rows, of)
    every, escalated = _completed(name), rows.escalated()
    parts = {"completed": every, "escalated": escalated}
    if of is not None:
        mine = escalated.filter(definition__in=of)
        parts = {"completed": _of(every, of), "escalated": mine, "every": every}
    found = each_capped(parts, {"completed": CAP, "every": CAP})
    shown = {one: live[one] for one in SHOWN if one != Status.PAUSED or live[one]}
    completed = found["completed"]
    more = completed.at_least or (of is not None and found["every"].at_least)
    shown[Status.COMPLETED] = counted(completed.number, more=more)
    return Counts(
        {str(one): number for one, number in shown.items()}, found["escalated"]
    )


def _by_status(
    rows: ProcessInstanceQuerySet, of: Collection[int] | None
) -> dict[Status, Capped]:
    """Count live processes by status; a large status does not hide a small one."""
    live = rows.live().order_by("name", "status", "-pk")
    named = {status: live.filter(status=status) for status in LIVE}
    unsure: Mapping[str, Capped] = {}
    if of is None:
        parts = list(named.values())
    elif len(of) <= EACH:
        each = [ProcessInstance.objects.live_on(row) for row in of]
        found = [one.filter(status=status) for one in each for status in LIVE]
        parts = [one.order_by("definition", "status", "-pk") for one in found]
    else:
        parts = [_of(some, of) for some in named.values()]
        unsure = each_capped(
            {str(one): some for one, some in named.items()}, dict.fromkeys(LIVE, CAP)
        )
    numbers, full = defaultdict[str, int](int), set[str]()
    told = [part.annotate(row=F("definition")) for part in parts] if of else parts
    fields = ["row", "status"] if of else ["status"]
    for *_, status, number in grouped(told, *fields, cap=CAP):
        numbers[status] += number
        if number >= CAP:
            full.add(status)
    full |= {name for name, one in unsure.items() if one.at_least}
    return {one: counted(numbers[one], more=one in full) for one in LIVE}


def _completed(name: str) -> ProcessInstanceQuerySet:
    """Return completed processes, newest first along the index on name and id, which stops at a cap."""
    # A range of one value: PostgreSQL would otherwise scan all processes.
    rows = ProcessInstance.objects.filter(name__range=(name, name))
    return rows.filter(status=Status.COMPLETED).order_by("name", "-pk")


def _of(rows: ProcessInstanceQuerySet, of: Collection[int]) -> ProcessInstanceQuerySet:
    """Limit the first rows to some stored definitions."""
    first = ProcessInstance.objects.filter(pk__in=rows.values("pk")[:CAP])
    return first.filter(definition__in=of)
