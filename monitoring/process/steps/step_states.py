"""The state of each step of a workflow: the status of its last visit, its number of visits, its progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Q

from monitoring.base.graphs import known_graph
from monitoring.process.revision.moment import ProcessMoment
from orchestrator.models import (
    Blocked,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

GOOD = ("done", "skipped", "undone")
"""Statuses of a step that let the process continue."""

MOST = 60_000
"""The maximum number of visits that one page reads."""

WAITS = (StepKind.JOIN, StepKind.MAP, StepKind.WAIT, StepKind.ASK, StepKind.SLEEP)
"""The kinds of visits that wait while they are open."""


class VisitRow(NamedTuple):
    """The stored facts of a visit; the defaults describe the only visit of a step, which is done."""

    node: str
    id: int = 0
    kind: str = StepKind.STEP
    visit: int = 1
    round: int = 1
    status: str = StepStatus.DONE
    attempt: int = 1
    progress: Any = None
    finished_at: datetime | None = datetime.min.replace(tzinfo=UTC)
    blocked: str = ""
    blocked_on: str = ""
    child_id: UUID | None = None
    child__started_at: datetime | None = None
    arrived: int = 0
    declined: bool = False
    left: int | None = None
    entered: int = 0
    expected: int | None = None
    checksum: str = ""

    @property
    def place(self) -> tuple[str, int, int]:
        """The values that the visit of a map shares with its elements."""
        return self.node, self.visit, self.round


PLAIN = {
    name: getattr(VisitRow(""), name) for name in ("kind", "status", "visit", "round")
}
"""The columns that distinguish such a visit from others."""


@dataclass(frozen=True)
class StepState:
    """One step: its shown status, its number of visits, and the attempt and progress of the last visit."""

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

Elements = Mapping[str, Mapping[str, int]]
"""The number of open elements by status, for each map."""


def step_states_of(moment: ProcessMoment) -> dict[str, StepState]:
    """Read the states of all visited steps of a workflow, by name."""
    rows = moment.present.step_runs.filter(item=None)
    plain = Q(**PLAIN)
    if moment.is_newest:
        rows = rows.exclude(status=StepStatus.SUPERSEDED)
    else:
        rows = rows.filter(entered__lte=moment.revision)
        plain &= Q(left__lte=moment.revision)
    # Nearly all of ten thousand steps have one visit, which is done: their names suffice.
    names = rows.filter(plain).order_by("pk").values_list("node", flat=True)[:MOST]
    others = rows.exclude(plain).order_by("pk").values_list(*VisitRow._fields)[:MOST]
    found, visits = list(names), list(map(VisitRow._make, others))
    if moment.is_newest:
        elements = _open_elements(moment.present, visits)
        return combine_visits(found, visits, elements, moment.instance)
    found = list(map(moment.name_then, found))
    visits = list(_turn_back(visits, moment))
    states = combine_visits(
        found, visits, _elements_in_trouble(moment), moment.instance
    )
    return states | _gathering_joins(states, moment)


def combine_visits(
    plain: Iterable[str],
    visits: Iterable[VisitRow],
    elements: Elements,
    instance: ProcessInstance,
) -> dict[str, StepState]:
    """Return the states of steps, by name.

    Args:
        plain: the names of steps with one visit, which is done.
        visits: all other visits, the oldest first.
        elements: the open elements of maps.
        instance: the process at the moment of these visits.
    """
    found = dict.fromkeys(plain, DONE_ONCE)
    several: dict[str, list[VisitRow]] = defaultdict(list)
    for visit in visits:
        if visit.node in found and visit.node not in several:
            several[visit.node].append(VisitRow(visit.node))
        several[visit.node].append(visit)
    return found | {
        node: _state(some, instance, elements.get(node, {}))
        for node, some in several.items()
    }


def _open_elements(instance: ProcessInstance, visits: Iterable[VisitRow]) -> Elements:
    found: dict[str, dict[str, int]] = defaultdict(Counter)
    if any(one.kind == StepKind.MAP and one.finished_at is None for one in visits):
        rows = StepRun.objects.filter(instance=instance, finished_at=None)
        spread = rows.filter(item__isnull=False).order_by().values("node", "status")
        for row in spread.annotate(number=Count("id")):
            found[row["node"]][row["status"]] += row["number"]
    return found


def _elements_in_trouble(moment: ProcessMoment) -> Elements:
    """Return the failed open elements at a past moment; rows do not tell the status of the others."""
    found: dict[str, dict[str, int]] = defaultdict(Counter)
    rows = StepRun.objects.filter(pk__in=moment.trouble, item__isnull=False)
    for pk, node, left in rows.values_list("pk", "node", "left"):
        if left is None or left > moment.revision:
            found[moment.name_then(node)][moment.trouble[pk].status] += 1
    return found


def _turn_back(visits: Sequence[VisitRow], moment: ProcessMoment) -> Iterator[VisitRow]:
    """Turn visits back to a past moment, without visits that were superseded before it.

    Args:
        visits: the rows of now; all of them had begun by then.
        moment: the moment.
    """
    counted = _count_elements(visits, moment)
    undoing = False
    for kept in visits:
        visit = _visit_then(kept, moment, counted)
        if not visit.status:
            continue
        if (visit.kind, visit.status) == (StepKind.UNDO, StepStatus.RUNNING):
            visit = visit._replace(status=StepStatus.WAITING) if undoing else visit
            undoing = True
        yield visit


def _visit_then(
    kept: VisitRow,
    moment: ProcessMoment,
    counted: Mapping[tuple[str, int, int], Mapping[str, int]],
) -> VisitRow:
    """Return a visit at a past moment; without a status if it was superseded by then."""
    visit = kept._replace(node=moment.name_then(kept.node), blocked="", blocked_on="")
    if not _was_open(kept, moment):
        return visit._replace(status=_status_at_end(kept, moment))
    trouble, elements = moment.trouble.get(kept.id), counted.get(kept.place)
    return visit._replace(
        status=trouble.status if trouble else _open_status(kept, moment),
        attempt=trouble.attempt if trouble else kept.attempt,
        progress={**elements, "total": kept.expected} if elements else None,
        finished_at=None,
        declined=False,
    )


def _was_open(kept: VisitRow, moment: ProcessMoment) -> bool:
    return kept.left is None or kept.left > moment.revision


def _open_status(kept: VisitRow, moment: ProcessMoment) -> str:
    begun = kept.child__started_at
    waits = kept.kind in WAITS or (begun is not None and begun <= moment.until)
    return StepStatus.WAITING if waits else StepStatus.RUNNING


def _status_at_end(kept: VisitRow, moment: ProcessMoment) -> str:
    """Return the status of an ended visit before later revisions superseded it; "" if it was superseded by then."""
    if kept.status != StepStatus.SUPERSEDED:
        return kept.status
    if moment.superseded_at(kept.left or 0) <= moment.revision:
        return ""
    if kept.checksum:  # of its result
        return StepStatus.DONE
    passed = kept.entered == kept.left and not kept.attempt
    return StepStatus.NOT_TAKEN if passed else StepStatus.CANCELLED


def _count_elements(
    visits: Iterable[VisitRow], moment: ProcessMoment
) -> dict[tuple[str, int, int], dict[str, int]]:
    """Count in the database the done and failed elements of open maps at a past moment."""
    maps = [v for v in visits if v.kind == StepKind.MAP and _was_open(v, moment)]
    found = {visit.place: {"done": 0, "failed": 0} for visit in maps}
    rows = moment.present.step_runs.filter(
        item__isnull=False,
        node__in={visit.node for visit in maps},
        left__lte=moment.revision,
    )
    spread = rows.order_by().values("node", "visit", "round", "status")
    for row in spread.annotate(number=Count("id")):
        counts = found.get((row["node"], row["visit"], row["round"]))
        failed = row["status"] == StepStatus.FAILED
        if counts is not None:
            counts["failed" if failed else "done"] += row["number"]
    return found


def _gathering_joins(
    states: Mapping[str, StepState], moment: ProcessMoment
) -> dict[str, StepState]:
    """Return the joins that a branch had reached; the row of a started join has lost the time of the first branch."""
    edges = (edge for edge in moment.graph.edges if edge.id in moment.taken)
    arrived = Counter(edge.target for edge in edges)
    return {
        name: StepState("gathering", arrived=number)
        for name, number in arrived.items()
        if name not in states
    }


def _state(
    visits: list[VisitRow], instance: ProcessInstance, elements: Mapping[str, int]
) -> StepState:
    visited = [visit for visit in visits if visit.kind != StepKind.UNDO]
    undone = [visit for visit in visits if visit.kind == StepKind.UNDO]
    last = visited[-1] if visited else visits[-1]
    shown = shown_status(last, instance, elements)
    if undone:
        over = undone[-1].finished_at is not None
        shown = "undone" if over else undone[-1].status
    not_begun = (StepKind.JOIN, StepStatus.NOT_TAKEN)
    entered = {
        visit.visit
        for visit in visited
        if visit.kind not in not_begun and visit.status not in not_begun
    }
    return StepState(
        shown,
        len(entered),
        any(visit.finished_at is None for visit in visits) and shown != "gathering",
        last.attempt,
        last.progress if isinstance(last.progress, dict) else {},
        last.blocked_on if last.blocked == Blocked.REDO else "",
        last.arrived,
    )


def shown_status(
    run: StepRun | VisitRow,
    instance: ProcessInstance,
    elements: Mapping[str, int] | None = None,
) -> str:
    """Return a visit's shown status: a failure that the process survived is handled, a join gathers, a map runs.

    Args:
        run: the visit.
        instance: its process.
        elements: the number of a map's open elements by status, if known.
    """
    if run.finished_at is not None:
        return _ended_status(run, instance)
    if run.kind == StepKind.JOIN:
        return "gathering"
    if run.kind == StepKind.MAP and run.status == StepStatus.WAITING:
        busy = [StepStatus.FAILED, StepStatus.RUNNING, StepStatus.RETRYING]
        return next((str(one) for one in busy if (elements or {}).get(one)), "running")
    return run.status


def _ended_status(run: StepRun | VisitRow, instance: ProcessInstance) -> str:
    """Return the shown status of an ended visit; a failure that the process survived is handled."""
    if run.kind == StepKind.UNDO and run.status == StepStatus.DONE:
        return "undone"
    if run.status != StepStatus.FAILED or run.declined:
        return run.status
    caught = run.node in known_graph(instance.definition).catching
    survived = caught or instance.status != Status.CANCELLED
    return "handled" if survived or run.kind == StepKind.ITEM else "failed"


def visit_status(
    run: StepRun, instance: ProcessInstance, states: Mapping[str, StepState]
) -> str:
    """Return a visit's shown status; an open visit has the status of its step in the diagram."""
    if run.finished_at is None and not run.kind:
        return current_status(instance, run.status)
    if run.kind == StepKind.MAP and run.finished_at is None and run.node in states:
        return states[run.node].status
    return shown_status(run, instance)


def current_status(instance: ProcessInstance, run: str) -> str:
    """Return the shown status of a process manager's step; a stopped process hides that its step waits."""
    return (
        instance.status if instance.status in ("failed", "retrying", "paused") else run
    )
