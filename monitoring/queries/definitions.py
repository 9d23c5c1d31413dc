"""Definitions with what their instances are doing now."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models import F

from monitoring.queries.counts import CAP, Capped, each_capped, grouped, none
from orchestrator.models import ProcessInstance, Status
from orchestrator.models.process_instance import LIVE, ProcessInstanceQuerySet

SHOWN = (Status.RUNNING, Status.WAITING, Status.RETRYING, Status.FAILED)


@dataclass
class Counts:
    """How many live instances of one definition have which status; completed ones up to a cap."""

    statuses: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    completed: Capped = field(default_factory=none)
    escalated: Capped = field(default_factory=none)
    unsure: set[str] = field(default_factory=set)
    """Of which statuses there may be more than was counted."""

    @property
    def live(self) -> int:
        return sum(self.statuses.values())

    def by_status(self) -> list[tuple[str, int | Capped]]:
        """Pairs of status and number, in the order they are shown."""
        pairs: list[tuple[str, int | Capped]] = [
            (name, self._number(name)) for name in SHOWN
        ]
        if self.statuses.get(Status.PAUSED):
            pairs.append((Status.PAUSED, self._number(Status.PAUSED)))
        return [*pairs, (Status.COMPLETED, self.completed)]

    def _number(self, status: str) -> int | Capped:
        number = self.statuses.get(status, 0)
        return Capped(number, number) if status in self.unsure else number


EACH = 10
"""Stored rows of a definition that are counted each for itself; others are looked for among all of its processes."""


def counts_of(name: str, of: Collection[int] | None = None) -> Counts:
    """Counts of one definition; or of some of its stored rows, given by their keys."""
    rows, counts = ProcessInstance.objects.filter(name=name), Counts()
    counts.statuses, counts.unsure = _by_status(rows, of)
    every, escalated = _completed(name), rows.escalated()
    parts = {"completed": every, "escalated": escalated}
    if of is not None:
        mine = escalated.filter(definition__in=of)
        parts = {"completed": _of(every, of), "escalated": mine, "every": every}
    found = each_capped(parts, {"completed": CAP, "every": CAP})
    number = found["completed"].number
    more = of is not None and found["every"].at_least
    counts.completed = Capped(number, number if more else CAP)
    counts.escalated = found["escalated"]
    return counts


def _by_status(
    rows: ProcessInstanceQuerySet, of: Collection[int] | None
) -> tuple[dict[str, int], set[str]]:
    """How many go on in each status, none hidden by the many of another; and where there may be more."""
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
    return numbers, full | {name for name, one in unsure.items() if one.at_least}


def _completed(name: str) -> ProcessInstanceQuerySet:
    """Newest first along the index on name and id, so a cap is reached after as many rows."""
    # A range of one, or PostgreSQL would look for them among all processes.
    rows = ProcessInstance.objects.filter(name__range=(name, name))
    return rows.filter(status=Status.COMPLETED).order_by("name", "-pk")


def _of(
    rows: ProcessInstanceQuerySet, of: Collection[int] | None
) -> ProcessInstanceQuerySet:
    """All of them, or those of some stored definitions among the first that are looked at."""
    if of is None:
        return rows
    first = ProcessInstance.objects.filter(pk__in=rows.values("pk")[:CAP])
    return first.filter(definition__in=of)
