"""The steps of a workflow as they stood at one of its checkpoints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Q

from monitoring.queries.instance.past import PastMoment
from monitoring.queries.instance.step_states import (
    MOST,
    PLAIN,
    StepState,
    VisitSummary,
    combined,
)
from orchestrator.definition.graph import Graph
from orchestrator.models import StepKind, StepRun, StepStatus

WAITS = (StepKind.JOIN, StepKind.MAP, StepKind.WAIT, StepKind.ASK, StepKind.SLEEP)
"""Visits that wait as long as they are open."""


class KeptVisit(NamedTuple):
    """What its row keeps of a visit."""

    id: int
    node: str
    kind: str
    visit: int
    round: int
    status: str
    attempt: int
    progress: Any
    finished_at: datetime | None
    blocked: str
    blocked_on: str
    child_id: UUID | None
    child__started_at: datetime | None
    arrived: int
    declined: bool
    left: int | None
    entered: int
    expected: int | None
    checksum: str

    @property
    def place(self) -> tuple[str, int, int]:
        """What the elements of a map have in common with it."""
        return self.node, self.visit, self.round


def states_then(
    moment: PastMoment, graph: Graph, taken: Iterable[str]
) -> dict[str, StepState]:
    """All steps that had had a visit at a moment, by name.

    Args:
        moment: the moment.
        graph: the whole workflow.
        taken: the ids of the edges that had been taken.
    """
    revision = moment.revision
    rows = moment.present.step_runs.filter(item=None, entered__lte=revision)
    over = Q(**PLAIN, left__lte=revision)
    plain = rows.filter(over).order_by("pk").values_list("node", flat=True)[:MOST]
    kept = rows.exclude(over).order_by("pk").values_list(*KeptVisit._fields)[:MOST]
    visits = [KeptVisit(*row) for row in kept]
    maps = _elements_then(moment, visits)
    runs = summaries_then(visits, moment, maps)
    then = list(map(moment.name_then, plain))
    found = combined(then, runs, _spread(moment), moment.then)
    return found if moment.is_last else found | _gathering(found, graph, set(taken))


def summaries_then(
    visits: Iterable[KeptVisit],
    moment: PastMoment,
    maps: Mapping[tuple[str, int, int], Mapping[str, int]],
) -> list[VisitSummary]:
    """Visits as they were at a moment, without those that were given up before it.

    Args:
        visits: what rows keep of them; all had been entered by then.
        moment: the moment.
        maps: how many elements of the maps that were going on were done, and had failed.
    """
    found = []
    undoing = False
    for kept in visits:
        status = _status_then(kept, moment)
        if not status:
            continue
        is_open = _is_open(kept, moment)
        if is_open and kept.kind == StepKind.UNDO and status == StepStatus.RUNNING:
            status = StepStatus.WAITING if undoing else status
            undoing = True
        found.append(_summary(kept, moment, status, is_open, maps.get(kept.place)))
    return found


def _summary(
    kept: KeptVisit,
    moment: PastMoment,
    status: str,
    is_open: bool,
    elements: Mapping[str, int] | None,
) -> VisitSummary:
    trouble = moment.trouble.get(kept.id)
    attempt = trouble.attempt if trouble and not moment.is_last else kept.attempt
    progress = kept.progress
    if is_open and not moment.is_last:
        progress = {**elements, "total": kept.expected} if elements else None
    return VisitSummary(
        kept.id,
        moment.name_then(kept.node),
        kept.kind,
        kept.visit,
        status,
        attempt,
        progress,
        None if is_open else kept.finished_at,
        kept.blocked if moment.is_last else "",
        kept.blocked_on if moment.is_last else "",
        kept.child_id,
        kept.arrived,
        kept.declined and not is_open,
    )


def _is_open(kept: KeptVisit, moment: PastMoment) -> bool:
    return kept.left is None or kept.left > moment.revision


def _status_then(kept: KeptVisit, moment: PastMoment) -> str:
    """How a visit stood; "" if it did not count any more."""
    if _is_open(kept, moment):
        return _open_status(kept, moment)
    if kept.status != StepStatus.SUPERSEDED:
        return kept.status
    left = kept.left or 0
    return "" if moment.superseded_at(left) <= moment.revision else _ended_as(kept)


def _open_status(kept: KeptVisit, moment: PastMoment) -> str:
    if moment.is_last:
        return kept.status
    trouble = moment.trouble.get(kept.id)
    if trouble is not None:
        return trouble.status
    begun = kept.child__started_at
    waits = kept.kind in WAITS or (begun is not None and begun <= moment.at)
    return StepStatus.WAITING if waits else StepStatus.RUNNING


def _ended_as(kept: KeptVisit) -> str:
    """How a visit had ended whose row only says that it was given up later: what has a result has its checksum."""
    if kept.checksum:
        return StepStatus.DONE
    passed = kept.entered == kept.left and not kept.attempt
    return StepStatus.NOT_TAKEN if passed else StepStatus.CANCELLED


def _elements_then(
    moment: PastMoment, visits: Iterable[KeptVisit]
) -> dict[tuple[str, int, int], dict[str, int]]:
    """How far the maps were that were going on, counted in the database."""
    going_on = [v for v in visits if v.kind == StepKind.MAP and _is_open(v, moment)]
    if not going_on or moment.is_last:
        return {}
    found = {visit.place: {"done": 0, "failed": 0} for visit in going_on}
    rows = moment.present.step_runs.filter(
        item__isnull=False,
        node__in={visit.node for visit in going_on},
        left__lte=moment.revision,
    )
    spread = rows.order_by().values("node", "visit", "round", "status")
    for row in spread.annotate(number=Count("id")):
        counts = found.get((row["node"], row["visit"], row["round"]))
        failed = row["status"] == StepStatus.FAILED
        if counts is not None:
            counts["failed" if failed else "done"] += row["number"]
    return found


def _spread(moment: PastMoment) -> dict[str, dict[str, int]]:
    """How many open elements of each map were in trouble, and what trouble."""
    found: dict[str, dict[str, int]] = defaultdict(Counter)
    rows = StepRun.objects.filter(pk__in=moment.trouble, item__isnull=False)
    for pk, node, left in rows.values_list("pk", "node", "left"):
        if left is None or left > moment.revision:
            found[moment.name_then(node)][moment.trouble[pk].status] += 1
    return found


def _gathering(
    found: Mapping[str, StepState], graph: Graph, taken: set[str]
) -> dict[str, StepState]:
    """The joins that a branch had come to: when they start, their rows forget when the first one came."""
    arrived = Counter(edge.target for edge in graph.edges if edge.id in taken)
    return {
        name: StepState("gathering", arrived=number)
        for name, number in arrived.items()
        if name not in found
    }
