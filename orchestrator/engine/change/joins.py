"""How the joins of a process stand, and how their steps begin."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from orchestrator.definition.workflow.advance import Arrivals, starved
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.exceptions import Permanent
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.text import Text


def arrivals_of(row: StepRun, *, over: bool) -> Arrivals:
    """How a join stands whose row this is."""
    return Arrivals(row.arrived, row.taken, over, _failed(row))


def counts(now: Arrivals) -> dict[str, Any]:
    """The columns that say how a join stands, also that nothing counts any more when it was given up.

    When its step has started the progress is the step's own.
    """
    found: dict[str, Any] = {"arrived": now.arrived, "taken": now.taken}
    if not now.fired:
        found["progress"] = {"failed": now.failed} if now.failed else None
    return found


def start(row: StepRun, vertex: Vertex, now: Arrivals, at: datetime) -> None:
    """Has a join's step begin; one that lacks branches is run at once in order to fail, whatever else it would do."""
    row.arrived, row.taken = now.arrived, now.taken
    if starved(vertex, now):
        row.progress = {"failed": now.failed} if now.failed else None
        row.status, row.wake_at = StepStatus.READY, at


def check_branches(run: StepRun, vertex: Vertex) -> None:
    """Stops the step of a join that can have what it needs no more.

    Raises:
        Permanent: it lacks branches.
    """
    if run.kind == StepKind.UNDO or not starved(vertex, arrivals_of(run, over=True)):
        return
    others = Text("the others were")
    if failed := _failed(run):
        others = Text("%(number)s failed, and the others were", failed)
    raise Permanent(
        "the join at %(step)s needs %(needed)s of its %(all)s branches, but %(came)s came: %(others)s "
        "not taken",
        vertex.name,
        vertex.needed,
        vertex.ways_in,
        run.taken,
        others,
    )


def _failed(row: StepRun) -> int:
    return int((row.progress or {}).get("failed", 0))
