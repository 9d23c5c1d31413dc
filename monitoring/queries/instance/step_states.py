"""The state of each step of a workflow: what its last visit says, how often it was visited, how far it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count

from monitoring.queries.graphs import known_graph
from orchestrator.models import (
    Blocked,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

GOOD = ("done", "skipped", "undone")
"""A step in such a state has let the process go on."""

MOST = 60_000
"""Visits that one page looks at."""


class VisitSummary(NamedTuple):
    """What the diagram needs to know of a visit."""

    pk: int
    node: str
    kind: str
    visit: int
    status: str
    attempt: int
    progress: Any
    finished_at: datetime | None
    blocked: str
    blocked_on: str
    child_id: UUID | None
    arrived: int
    declined: bool


PLAIN: dict[str, Any] = {
    "kind": StepKind.STEP,
    "status": StepStatus.DONE,
    "visit": 1,
    "round": 1,
}
"""What is true of a visit that there is nothing more to say about."""

SIMPLE: dict[str, Any] = {
    "kind": "step",
    "visit": 1,
    "status": "done",
    "progress": None,
    "finished_at": datetime.min.replace(tzinfo=UTC),
    "blocked": "",
    "blocked_on": "",
    "child_id": None,
    "arrived": 0,
    "declined": False,
}


@dataclass(frozen=True)
class StepState:
    """One step: its shown status, the visits it has had, and of its last one attempt and progress."""

    status: str = ""
    visits: int = 0
    open: bool = False
    attempt: int = 0
    progress: Mapping[str, Any] = field(default_factory=dict)
    blocked_on: str = ""
    arrived: int = 0

    @property
    def good(self) -> bool:
        return self.status in GOOD


DONE_ONCE = StepState("done", 1)


def step_states_of(instance: ProcessInstance) -> dict[str, StepState]:
    """All steps that have had a visit, by name."""
    rows = instance.step_runs.filter(item=None).order_by("pk")
    rows = rows.exclude(status=StepStatus.SUPERSEDED)
    # Of ten thousand steps nearly all were just done, once: of them the names are enough.
    plain = rows.filter(**PLAIN).values_list("node", flat=True)[:MOST]
    found = list(plain)
    runs = [
        VisitSummary(*row)
        for row in rows.exclude(**PLAIN).values_list(*_columns())[:MOST]
    ]
    return combined(found, runs, _open_elements(instance, runs), instance)


def combined(
    plain: Iterable[str],
    runs: Iterable[VisitSummary],
    spread: Mapping[str, Mapping[str, int]],
    instance: ProcessInstance,
) -> dict[str, StepState]:
    """The states of steps, by name.

    Args:
        plain: the steps that were done, once.
        runs: all other visits, the oldest first.
        spread: for each map how many of its open elements have which status.
        instance: the process, as it stands with these visits.
    """
    found = dict.fromkeys(plain, DONE_ONCE)
    several: dict[str, list[VisitSummary]] = defaultdict(list)
    for run in runs:
        if run.node in found and run.node not in several:
            several[run.node].append(run._replace(**SIMPLE))
        several[run.node].append(run)
    return found | {
        node: _state(some, instance, spread.get(node, {}))
        for node, some in several.items()
    }


def _columns() -> Iterable[str]:
    return ("id" if name == "pk" else name for name in VisitSummary._fields)


def _open_elements(
    instance: ProcessInstance, runs: Iterable[VisitSummary]
) -> dict[str, dict[str, int]]:
    """How many elements of the maps that are going on have which status."""
    found: dict[str, dict[str, int]] = defaultdict(Counter)
    if any(run.kind == StepKind.MAP and run.finished_at is None for run in runs):
        rows = StepRun.objects.filter(instance=instance, finished_at=None)
        spread = rows.filter(item__isnull=False).order_by().values("node", "status")
        for row in spread.annotate(number=Count("id")):
            found[row["node"]][row["status"]] += row["number"]
    return found


def _state(
    runs: list[VisitSummary], instance: ProcessInstance, spread: Mapping[str, int]
) -> StepState:
    visited = [run for run in runs if run.kind != StepKind.UNDO]
    undone = [run for run in runs if run.kind == StepKind.UNDO]
    last = visited[-1] if visited else runs[-1]
    shown = shown_status(last, instance, spread)
    if undone:
        over = undone[-1].finished_at is not None
        shown = "undone" if over else undone[-1].status
    not_begun = (StepKind.JOIN, StepStatus.NOT_TAKEN)
    entered = {
        r.visit
        for r in visited
        if r.kind not in not_begun and r.status not in not_begun
    }
    return StepState(
        shown,
        len(entered),
        any(run.finished_at is None for run in runs) and shown != "gathering",
        last.attempt,
        last.progress if isinstance(last.progress, dict) else {},
        last.blocked_on if last.blocked == Blocked.REDO else "",
        last.arrived,
    )


def shown_status(
    run: StepRun | VisitSummary,
    instance: ProcessInstance,
    spread: Mapping[str, int] | None = None,
) -> str:
    """A visit's status as shown: a failure that the process got over was handled, a join gathers, a map runs.

    Args:
        run: the visit.
        instance: its process.
        spread: how many open elements of a map have which status, if that is known.
    """
    if run.finished_at is not None:
        if run.kind == StepKind.UNDO and run.status == StepStatus.DONE:
            return "undone"
        if run.status != StepStatus.FAILED or run.declined:
            return run.status
        caught = run.node in known_graph(instance.definition).catching
        got_over = caught or instance.status != Status.CANCELLED
        return "handled" if got_over or run.kind == StepKind.ITEM else "failed"
    if run.kind == StepKind.JOIN:
        return "gathering"
    if run.kind == StepKind.MAP and run.status == StepStatus.WAITING:
        busy = [StepStatus.FAILED, StepStatus.RUNNING, StepStatus.RETRYING]
        return next((str(one) for one in busy if (spread or {}).get(one)), "running")
    return run.status


def visit_status(
    run: StepRun, instance: ProcessInstance, states: Mapping[str, StepState]
) -> str:
    """A visit's status as shown; a map that is going on is as its step is in the diagram."""
    if run.kind == StepKind.MAP and run.finished_at is None and run.node in states:
        return states[run.node].status
    return shown_status(run, instance)
