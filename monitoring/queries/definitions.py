"""Definitions with what their instances are doing now."""

from collections import defaultdict
from dataclasses import dataclass, field

from django.db.models import F, QuerySet

from monitoring.diagrams import DiagramState, Drawing, NodeState, drawing_of
from monitoring.diagrams.sketch import Part, Sketch
from monitoring.queries.counts import MANY, Capped, capped, grouped, none, short
from monitoring.queries.graphs import graph_of
from monitoring.statuses import look
from orchestrator.models import (
    Definition,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
)

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

    @property
    def live(self) -> int:
        return sum(self.statuses.values())

    def by_status(self) -> list[tuple[str, int | Capped]]:
        """Pairs of status and number, in the order they are shown."""
        pairs: list[tuple[str, int | Capped]] = [
            (name, self.statuses.get(name, 0)) for name in SHOWN
        ]
        if self.statuses.get(Status.PAUSED):
            pairs.append((Status.PAUSED, self.statuses[Status.PAUSED]))
        return [*pairs, (Status.COMPLETED, self.completed)]

    @property
    def needs_a_person(self) -> int:
        return max(self.statuses.get(Status.FAILED, 0), self.escalated.number)


@dataclass(frozen=True)
class Tile:
    """A definition on the first page: its newest version, drawn with the counts of all its versions."""

    definition: Definition
    counts: Counts
    drawing: Drawing
    state: DiagramState


def overview() -> list[Tile]:
    """Every definition, by name."""
    tiles = []
    for definition, counts in _newest():
        drawing = drawing_of(graph_of(definition), definition.fingerprint)
        state = map_state(drawing.sketch, counts)
        tiles.append(Tile(definition, counts, drawing, state))
    return tiles


def _newest() -> list[tuple[Definition, Counts]]:
    newest: dict[str, Definition] = {}
    for definition in Definition.objects.defer("graph").order_by(
        "name", "version", "pk"
    ):
        newest[definition.name] = definition
    counts: dict[str, Counts] = defaultdict(Counts)
    live = ProcessInstance.objects.live()
    for name, status, step, number in grouped(live, "name", "status", "step"):
        counts[name].statuses[status] += number
        if newest[name].kind != Definition.Kind.WORKFLOW:
            counts[name].steps[step][status] += number
    for name, node, status, number in grouped(
        current_runs().annotate(of=F("instance__name")), "of", "node", "status"
    ):
        counts[name].steps[node][status] += number
    return [
        (definition, _with_ended(counts[name], name))
        for name, definition in newest.items()
    ]


def current_runs() -> QuerySet[StepRun]:
    """The visits that live workflows are at; a join that still waits for branches, or one element, is none."""
    rows = StepRun.objects.filter(finished_at=None, item=None).exclude(kind="")
    rows = rows.exclude(kind=StepKind.JOIN)
    return rows.filter(instance__finished_at=None)


def counts_of(name: str, version: Definition | None = None) -> Counts:
    """Counts of one definition, or of one of its versions."""
    rows = ProcessInstance.objects.live().filter(name=name)
    if version is not None:
        rows = rows.filter(definition__version=version.version)
    counts, steps = Counts(), Counts().steps
    for status, step, number in grouped(rows, "status", "step"):
        counts.statuses[status] += number
        steps[step][status] += number
    runs = current_runs().filter(instance__name=name)
    if version is not None:
        runs = runs.filter(instance__definition__version=version.version)
    for node, status, number in grouped(runs, "node", "status"):
        counts.steps[node][status] += number
    if not counts.steps:
        counts.steps = steps
    return _with_ended(counts, name, version)


def _with_ended(counts: Counts, name: str, version: Definition | None = None) -> Counts:
    rows = ProcessInstance.objects.filter(name=name)
    if version is not None:
        rows = rows.filter(definition__version=version.version)
    # Newest first along the index on name and id, so a cap is reached after as many rows.
    counts.completed = capped(rows.filter(status=Status.COMPLETED), MANY)
    counts.escalated = capped(rows.escalated())
    return counts


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
    number = str(counts.completed) if final else short(sum(steps.values()))
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
