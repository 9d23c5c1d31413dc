"""What follows when a visit is settled: decided by the pure `advance`, made into rows here.

The row of a vertex with several ways in is made by the first arrival, as a join that waits, and turns into the visit
itself when enough have arrived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from orchestrator.definition.workflow.advance import (
    Advance,
    Arrivals,
    ReadJoins,
    Settled,
    advance,
    starved,
)
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.rows import Each
from orchestrator.engine.change import redoing, retrying, secret_values
from orchestrator.engine.change.application_code import contained
from orchestrator.engine.change.visits import elements
from orchestrator.engine.change.workflow import UNBLOCKED, WorkflowChange
from orchestrator.engine.storage import definitions, idle_limit, tables
from orchestrator.exceptions import NoCase
from orchestrator.models import Blocked, StepKind, StepRun, StepStatus


def go_on(change: WorkflowChange, settled: Settled) -> None:
    """Carries out what follows when a visit is settled.

    Raises:
        NoCase: no way on fits the result.
    """
    Following(change).go_on(settled)


def decided(change: WorkflowChange, settled: Settled, look: ReadJoins) -> Advance:
    """What the pure core says of a settled visit; its predicates may raise anything, and tell what they were asked of.

    Args:
        change: of the process; it is only asked.
        settled: the visit.
        look: how joins stand.

    Raises:
        NoCase: no way on fits the result.
    """
    try:
        with contained(settled.step, NoCase):
            return advance(change.plan, settled, look)
    except Exception as error:
        names = definitions.workflow_of(change.instance).secrets(change.plan).names
        secret_values.note(error, names, change.instance.data, settled.result)
        raise


class Following:
    """What follows a settled visit in one change, and the maps that it has begun and that are empty."""

    def __init__(self, change: WorkflowChange) -> None:
        self.change = change
        self.emptied: list[StepRun] = []
        """Maps without elements: they are over at once."""
        self._result: Any = None
        self._joins = change.joins

    def go_on(self, settled: Settled) -> None:
        """Carries out what follows when a visit is settled.

        Raises:
            NoCase: no way on fits the result.
        """
        self._result = settled.result
        self.carry_out(decided(self.change, settled, self.look))

    def carry_out(self, found: Advance) -> None:
        """Makes rows of what the pure core has found."""
        idle_limit.allow_rows(len(found.entered) + len(found.not_taken))
        self.change.edge = ",".join(filter(None, [self.change.edge, *found.taken]))
        for name in found.not_taken:
            self._pass_over(name, found.joins.pop(name, None))
        for name, number in found.entered:
            self._begin(self.change.plan[name], number, found.joins.pop(name, None))
        for name, arrivals in found.joins.items():
            self._arrive(name, arrivals)
        self._cancel(found.given_up)
        while self.emptied:  # only now: what follows must see all that was found
            head = self.emptied.pop(0)
            self.go_on(Settled(head.node, head.visit, result=[]))
        self._cancel(found.caught)

    def _cancel(self, names: Sequence[str]) -> None:
        """Cancels the open visits of these steps, and carries out what follows; a join that waits has not started."""
        if not names:
            return
        stored = [
            run for run in self.change.open_visits(names) if run.kind != StepKind.JOIN
        ]
        for run in stored:
            self.change.close_open(run, StepStatus.CANCELLED)
        ended = [*stored, *self._for_good(names), *self._dropped(names)]
        for run in ended:
            if run.kind != StepKind.ITEM and not run.redo:
                self.go_on(Settled(run.node, run.visit, "cancelled"))
        for node in {run.node for run in ended if run.redo}:  # it had settled before
            redoing.wake_readers(self.change, node)
        # Nobody will see to those that had failed: what they had others give up goes on.
        self._revive({run.node for run in stored if run.status == StepStatus.FAILED})

    def _dropped(self, names: Sequence[str]) -> list[StepRun]:
        """Cancels the visits of these steps that this change has begun."""
        begun = [row for row in self.change.fresh if row.kind != StepKind.JOIN]
        found = [row for row in begun if row.node in names and row.finished_at is None]
        for row in found:
            self.change.drop(row)
        return found

    def _revive(self, failed: Collection[str]) -> None:
        """Brings back what these steps had given up, as it is stored by now."""
        if failed:
            self.change.flush()
        for node in sorted(failed):
            retrying.revive(self.change, node)

    def _for_good(self, names: Sequence[str]) -> list[StepRun]:
        """The visits of these steps that a failure has had given up until somebody sees to it: they stay cancelled."""
        given_up = self.change.instance.step_runs.filter(
            node__in=names, status=StepStatus.CANCELLED, blocked=Blocked.FAILURE
        )
        found = list(given_up.order_by("pk"))
        over = {"finished_at": self.change.now, "left": self.change.revision}
        for run in found:
            settled = tables.step_runs.update({**over, **UNBLOCKED}, {"id": run.pk})
            self.change.mark(settled)
            self.change.touch(run, StepStatus.CANCELLED)
        return found

    def look(self, names: Sequence[str]) -> dict[str, Arrivals]:
        """How joins stand, as stored and as this change has made them."""
        self.read(names)
        return {
            name: arrivals_of(row, over=self._is_over(row))
            for name in names
            if (row := self._joins.get(name)) is not None
        }

    def read(self, names: Iterable[str]) -> None:
        """Reads the joins of these steps that this change does not know yet."""
        unknown = [name for name in names if name not in self._joins]
        if not unknown:
            return
        self._joins |= dict.fromkeys(unknown)
        if not self.change.new:
            self._joins |= tables.joins.of(self.change.instance.pk, unknown)

    def _is_over(self, row: StepRun) -> bool:
        """Whether a join can start no more: it has, or it was cancelled while it waited."""
        cancelled = row.finished_at is not None or row.pk in self.change.closed
        return row.kind != StepKind.JOIN or cancelled

    def _arrive(self, name: str, now: Arrivals) -> None:
        """Another branch has come to a join that still waits, or has started before."""
        row, counts = self._joins.get(name), join_columns(now)
        if row is None:
            row = self._joins[name] = self.change.new_visit(self.change.plan[name])
            row.kind, row.status, row.wake_at = StepKind.JOIN, StepStatus.WAITING, None
            self.change.add(row)
        elif _is_stored(row):
            self.change.count(row, counts)
        for column, value in counts.items():
            setattr(row, column, value)

    def _pass_over(self, name: str, arrivals: Arrivals | None) -> None:
        """Marks a step on a branch that was not taken."""
        known = self._joins.get(name)
        if known is not None and _is_stored(known):
            arrived = arrivals.arrived if arrivals else known.arrived
            counts = {"arrived": arrived, "taken": 0}
            self.change.close_open(known, StepStatus.NOT_TAKEN, **counts)
            return
        row = known or self.change.new_visit(self.change.plan[name])
        if known is not None:
            self.change.instance.open_steps -= 1
        row.status, row.wake_at = StepStatus.NOT_TAKEN, None
        row.finished_at, row.left = self.change.now, self.change.revision
        row.arrived, row.taken = arrivals.arrived if arrivals else 0, 0
        if known is None:
            self.change.add(row)
        else:
            self.change.touch(row, row.status)

    def _begin(self, vertex: Vertex, number: int, arrivals: Arrivals | None) -> None:
        """A step starts."""
        row = self.change.new_visit(vertex, number)
        if arrivals is not None:
            start_join(row, vertex, arrivals, self.change.now)
        self.change.instance.step = vertex.name
        known = self._joins.get(vertex.name) if arrivals is not None else None
        if vertex.each is not None:
            self._spread(vertex.each, row)
            return
        if known is None:
            self.change.keep(row)
            self.change.add(row)
        elif _is_stored(known):
            self.change.keep(row)
            self._fire(known, row)
        else:
            row = self._start(known, row)
        if arrivals is not None:
            self._joins[vertex.name] = row

    def _start(self, waiting: StepRun, row: StepRun) -> StepRun:
        """The row that this change has made for a join becomes the visit itself."""
        for name in FIRED:
            setattr(waiting, name, getattr(row, name))
        self.change.keep(waiting)
        self.change.touch(waiting, waiting.status)
        self.change.wake(waiting)
        return waiting

    def _fire(self, waiting: StepRun, row: StepRun) -> None:
        """The stored row of a join that waited becomes the visit itself."""
        row.pk = waiting.pk
        values = {name: getattr(row, name) for name in FIRED}
        self.change.count(row, values, kind=StepKind.JOIN)
        self.change.touch(row, row.status)
        self.change.wake(row)

    def _spread(self, each: Each, head: StepRun) -> None:
        """A map: a row that stands for all of it, and one for each element."""
        rows = elements(each, head, self._result)
        idle_limit.allow_rows(len(rows))
        if not rows:
            head.status, head.finished_at = StepStatus.DONE, self.change.now
            head.left = self.change.revision
        self.change.add(head)
        if not rows:
            self.emptied.append(head)
            return
        self.change.keep(rows[0])
        for row in rows:
            self.change.add(row)


def arrivals_of(row: StepRun, *, over: bool) -> Arrivals:
    """How a join stands whose row this is."""
    return Arrivals(row.arrived, row.taken, over, failed_branches(row))


def join_columns(now: Arrivals) -> dict[str, Any]:
    """The columns that say how a join stands, also that nothing counts any more when it was given up.

    When its step has started the progress is the step's own.
    """
    found: dict[str, Any] = {"arrived": now.arrived, "taken": now.taken}
    if not now.fired:
        found["progress"] = {"failed": now.failed} if now.failed else None
    return found


def start_join(row: StepRun, vertex: Vertex, now: Arrivals, at: datetime) -> None:
    """Has a join's step begin; one that lacks branches is run at once in order to fail, whatever else it would do."""
    row.arrived, row.taken = now.arrived, now.taken
    if starved(vertex, now):
        row.progress = {"failed": now.failed} if now.failed else None
        row.status, row.wake_at = StepStatus.READY, at


def failed_branches(row: StepRun) -> int:
    """How many branches of a join that waits have failed."""
    return int((row.progress or {}).get("failed", 0))


def _is_stored(row: StepRun) -> bool:
    """Whether a join's row is in the database already: this change has not made it."""
    key: int | None = row.pk
    return key is not None


FIRED = (
    "kind",
    "status",
    "queue",
    "wake_at",
    "owner",
    "attempt",
    "arrived",
    "taken",
    "progress",
    "started_at",
    "entered",
)
"""What changes in a join's row when it starts."""
