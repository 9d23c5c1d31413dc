"""Definitions with what their instances are doing now."""

from collections import defaultdict
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from monitoring.diagrams import DiagramState, NodeState
from monitoring.diagrams.sketch import Part, Sketch
from monitoring.queries.counts import (
    CAP,
    MANY,
    Capped,
    capped,
    grouped,
    none,
    short,
)
from monitoring.statuses import look
from orchestrator.models import (
    Definition,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
)
from orchestrator.models.process_instance import ProcessInstanceQuerySet

SHOWN = (Status.RUNNING, Status.WAITING, Status.RETRYING, Status.FAILED)


@dataclass
class Counts:
    """How many live instances of one definition have which status, in all and by step; completed ones up to a cap."""

    statuses: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    steps: dict[str, dict[str, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )
    completed: Capped = field(default_factory=none)
    escalated: Capped = field(default_factory=none)
    unsure: set[str] = field(default_factory=set)
    """Of which statuses there may be more than was counted."""
    some: bool = False
    """Not all live ones were looked at for where they are."""

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

    def add(self, status: str, step: str, number: int) -> None:
        """Adds instances that are in a step with a status."""
        self.statuses[status] += number
        self.steps[step][status] += number

    def limit(self, cap: int) -> None:
        """Says of what there may be more, as so many were looked at: of each part, and for the steps of a workflow."""
        for part in PARTS:
            if sum(self.statuses.get(status, 0) for status in part) >= cap:
                self.unsure |= set(part)
                self.some = True


PARTS = (
    (Status.FAILED, Status.RETRYING, Status.PAUSED),
    (Status.RUNNING, Status.WAITING),
)
"""Live ones are counted in two parts, that many of one do not hide the few of the other."""

LOOKED_INTO = 1_000
"""Live workflows that are asked for the steps they are at: each may have many."""


def _of(name: str) -> ProcessInstanceQuerySet:
    return ProcessInstance.objects.filter(name=name)


def _live_parts(rows: ProcessInstanceQuerySet) -> list[ProcessInstanceQuerySet]:
    return [rows.live().filter(status__in=part) for part in PARTS]


def _completed(name: str, rows: ProcessInstanceQuerySet) -> ProcessInstanceQuerySet:
    """Newest first along the index on name and id, so a cap is reached after as many rows."""
    # A range of one, or PostgreSQL would look for them among all processes.
    rows = rows.filter(name__range=(name, name), status=Status.COMPLETED)
    return rows.order_by("name", "-pk")


def _visits(rows: ProcessInstanceQuerySet, number: int) -> QuerySet[StepRun]:
    """The visits that some live workflows are at; a join that waits for branches, or one element, is none."""
    some = rows.live().order_by("name", "status", "-pk").values("pk")[:number]
    runs = StepRun.objects.filter(instance__in=some, finished_at=None, item=None)
    return runs.exclude(kind="").exclude(kind=StepKind.JOIN)


def counts_of(name: str, version: Definition | None = None) -> Counts:
    """Counts of one definition, or of one of its versions."""
    rows, every = _of(name), ProcessInstance.objects.all()
    if version is not None:
        of_version = Q(definition__in=_rows_of(name, version.version))
        rows, every = rows.filter(of_version), every.filter(of_version)
    counts = Counts()
    for status, step, number in grouped(_live_parts(rows), "status", "step"):
        counts.add(status, step, number)
    counts.limit(CAP)
    visits = grouped(_visits(rows, LOOKED_INTO), "node", "status", cap=MANY)
    if visits:
        counts.steps.clear()
        counts.some |= counts.live > LOOKED_INTO
    for node, status, number in visits:
        counts.steps[node][status] += number
    counts.completed = capped(_completed(name, every), CAP)
    counts.escalated = capped(rows.escalated())
    return counts


def _rows_of(name: str, version: int) -> list[int]:
    found = Definition.objects.filter(name=name, version=version)
    return list(found.values_list("pk", flat=True))


def map_state(sketch: Sketch, counts: Counts, chosen: str = "") -> DiagramState:
    """How the definition's map looks: on each node the live instances in it, and those that failed there."""
    return DiagramState(
        {
            part.id: _on_map(part, _together(counts, part.members), counts, chosen)
            for part in sketch.steps()
        }
    )


def _together(counts: Counts, members: tuple[str, ...]) -> dict[str, int]:
    """The instances by status in all of these steps."""
    found: dict[str, int] = defaultdict(int)
    for name in members:
        for status, number in counts.steps.get(name, {}).items():
            found[status] += number
    return found


def _on_map(
    part: Part, steps: dict[str, int], counts: Counts, chosen: str
) -> NodeState:
    failed, final = steps.get(Status.FAILED, 0), part.shape == "final"
    live = short(sum(steps.values()))
    number = str(counts.completed) if final else live
    if counts.some and not final and live != "0":
        number = f"{live}+"
    classes = (_tone(steps, final, counts), "is-chosen" if part.id == chosen else "")
    said = ", ".join(f"{look(s).word} {n}" for s, n in steps.items() if n)
    return NodeState(
        tuple(filter(None, classes)),
        count="" if number == "0" else number,
        bad=short(failed) if failed else "",
        title=f"{part.label}: {said}" if said else part.label,
    )


def _tone(steps: dict[str, int], final: bool, counts: Counts) -> str:
    if final:
        return "has-done" if counts.completed else ""
    for status in (Status.RETRYING, Status.RUNNING, Status.WAITING):
        if steps.get(status):
            return f"has-{status.value}"
    return ""
