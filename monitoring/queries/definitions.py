"""Definitions with what their instances are doing now."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from monitoring.queries.counts import CAP, Capped, capped, grouped, none
from orchestrator.models import ProcessInstance, Status
from orchestrator.models.process_instance import ProcessInstanceQuerySet

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


PARTS = (
    (Status.FAILED, Status.RETRYING, Status.PAUSED),
    (Status.RUNNING, Status.WAITING),
)
"""Live ones are counted in two parts, that many of one do not hide the few of the other."""


def counts_of(name: str, of: Collection[int] | None = None) -> Counts:
    """Counts of one definition; or of some of its stored rows, given by their keys."""
    rows, counts = ProcessInstance.objects.filter(name=name), Counts()
    for part in PARTS:
        live = rows.live().filter(status__in=part)
        first = live.order_by("name", "status", "-pk")
        looked_at = 0
        for status, number in grouped(_of(first, of), "status", cap=CAP):
            counts.statuses[status] += number
            looked_at += number
        if of is not None:
            looked_at = first[:CAP].count()
        if looked_at >= CAP:
            counts.unsure |= set(part)
    completed = _completed(name)
    number = _of(completed, of)[:CAP].count()
    more = of is not None and completed[:CAP].count() >= CAP
    counts.completed = Capped(number, number if more else CAP)
    escalated = rows.escalated()
    if of is not None:
        escalated = escalated.filter(definition__in=of)
    counts.escalated = capped(escalated)
    return counts


def _completed(name: str) -> ProcessInstanceQuerySet:
    """Newest first along the index on name and id, so a cap is reached after as many rows."""
    # A range of one, or PostgreSQL would look for them among all processes.
    rows = ProcessInstance.objects.filter(name__range=(name, name))
    return rows.filter(status=Status.COMPLETED).order_by("name", "-pk")


def _of(
    rows: ProcessInstanceQuerySet, of: Collection[int] | None
) -> ProcessInstanceQuerySet:
    """All of them, or those of some stored definitions among the first that are looked at: no index finds these."""
    if of is None:
        return rows
    first = ProcessInstance.objects.filter(pk__in=rows.values("pk")[:CAP])
    return first.filter(definition__in=of)
