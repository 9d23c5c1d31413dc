"""The deadlines of waiting visits: the future ones, and the last one that was carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from monitoring.base.graphs import known_graph, running_timers
from monitoring.diagrams.words import phrase
from orchestrator.definition.graph import Edge
from orchestrator.models import Cause, CauseKind, Checkpoint, ProcessInstance, StepRun


@dataclass(frozen=True)
class Timeout:
    """A deadline, and what happens when it passes.

    Args:
        edge: its transition; None for a deadline that only raises the escalation level.
        at: when it passes; None if that is unknown, or the process is stalled.
        leads: the label of the step that it leads to; "" for the same step.
    """

    edge: Edge | None
    at: datetime | None = None
    leads: str = ""

    @property
    def text(self) -> str:
        """The time after the beginning of the visit."""
        return phrase(self.edge.event) if self.edge else ""

    @property
    def escalates(self) -> bool:
        """Whether it raises the escalation level."""
        return self.edge is None or self.edge.escalates


def timeouts_of(
    run: StepRun, instance: ProcessInstance, labels: Mapping[str, str], error: str = ""
) -> Iterable[Timeout]:
    """Yield the future deadlines of a visit, with times if the running code declares their lengths.

    Args:
        run: the waiting visit.
        instance: its process.
        labels: the labels of the steps.
        error: why its last deadline could not be carried out.
    """
    graph = known_graph(instance.definition)
    leaving = graph.leaving.get(run.node, ())
    edges = {edge.id: edge for edge in leaving if edge.kind == "deadline"}
    at = None if run.owner or error else run.wake_at
    times: Iterable[tuple[str, datetime | None]] = ()
    if not run.kind:
        times = _manager_times(run, instance, edges.keys(), at)
    elif not run.deadlines_fired and (run.wake_at or run.remaining):
        times = [(name, at) for name in edges]
        if not edges and run.node in graph.nodes:
            yield Timeout(None, at)
    for name, then in times:
        yield Timeout(edges[name], then, target_label(edges[name], labels))


def _manager_times(
    run: StepRun, instance: ProcessInstance, edges: Set[str], at: datetime | None
) -> list[tuple[str, datetime | None]]:
    """Return the future deadlines of a process manager's visit: edges, and times if the running code knows them."""
    timers = running_timers(instance.definition, run.node)
    if not timers or not {name for name, _delay in timers} <= edges:
        return [(name, None) for name in edges]
    left = timers[run.deadlines_fired :]
    return [(name, at and at + (delay - left[0][1])) for name, delay in left]


def target_label(edge: Edge, labels: Mapping[str, str]) -> str:
    """Return the label of the step that an edge leads to; "" for the same step."""
    same = edge.source == edge.target
    return "" if same else labels.get(edge.target, edge.target)


def passed_deadlines(runs: Iterable[StepRun]) -> dict[int, datetime]:
    """Return the time of the last deadline that was carried out, by visit."""
    late = [run for run in runs if run.deadlines_fired]
    if not late:
        return {}
    causes = {
        str(Cause.of(CauseKind.DEADLINE, run.pk, run.deadlines_fired - 1)): run.pk
        for run in late
    }
    rows = Checkpoint.objects.filter(
        instance__in={run.instance_id for run in late}, cause__in=causes
    )
    return {causes[cause]: at for cause, at in rows.values_list("cause", "at")}
