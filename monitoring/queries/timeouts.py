"""The deadlines of visits that wait: those to come, the last that passed, and what is over and not carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from monitoring.diagrams.words import phrase
from monitoring.queries.graphs import known_graph, running_timers
from orchestrator.definition.graph import Edge
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    ProcessInstance,
    StepRun,
)


@dataclass(frozen=True)
class Timeout:
    """What happens by itself if nothing else does.

    Args:
        text: how long after the visit began.
        at: when; None where that is not known, or its process stands still.
        leads: the step that it leads to, as people read it; "" where that is this one.
        escalates: whether it raises the escalation level.
        commands: those that it issues.
        notifies: who is told, by name.
        owner: who sees to the process from then on, by name.
        guard: when alone it does so.
    """

    text: str
    at: datetime | None = None
    leads: str = ""
    escalates: bool = False
    commands: tuple[str, ...] = ()
    notifies: tuple[str, ...] = ()
    owner: str = ""
    guard: str = ""


def timeouts_of(
    run: StepRun, instance: ProcessInstance, labels: Mapping[str, str], error: str = ""
) -> Iterable[Timeout]:
    """The deadlines that have not passed yet; when each does, where the running code says how long it is.

    Args:
        run: the visit that waits.
        instance: its process.
        labels: the steps as people read them.
        error: what went wrong when its deadline was carried out.
    """
    graph = known_graph(instance.definition)
    edges = {
        edge.id: edge
        for edge in graph.leaving.get(run.node, ())
        if edge.kind == "deadline"
    }
    passing = run.owner or error
    at = None if passing else run.wake_at
    if run.kind:
        known = not run.deadlines_fired and (run.wake_at or run.remaining)
        if known and not edges and run.node in graph.nodes:
            yield Timeout("", at, escalates=True)
        elif known:
            yield from (_timeout(edge, at, labels) for edge in edges.values())
        return
    timers = running_timers(instance.definition, run.node)
    if not {edge for edge, _delay in timers} <= edges.keys() or not timers:
        yield from (_timeout(edge, None, labels) for edge in edges.values())
        return
    left = timers[run.deadlines_fired :]
    for edge, delay in left:
        then = at and at + (delay - left[0][1])
        yield _timeout(edges[edge], then, labels)


def _timeout(edge: Edge, at: datetime | None, labels: Mapping[str, str]) -> Timeout:
    return Timeout(
        phrase(edge.event),
        at,
        leads_of(edge, labels),
        edge.escalates,
        tuple(edge.commands),
        tuple(edge.notifies),
        edge.owner,
        edge.guard,
    )


def leads_of(edge: Edge, labels: Mapping[str, str]) -> str:
    """The step that an edge leads to, as people read it; "" where that is this one."""
    same = edge.source == edge.target
    return "" if same else labels.get(edge.target, edge.target)


def passed_of(runs: Iterable[StepRun]) -> dict[int, datetime]:
    """When the last deadline of each visit passed that was carried out; of those that had one."""
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
