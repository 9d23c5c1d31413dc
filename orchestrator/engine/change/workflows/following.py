"""Starting the visits that follow a settled one: the pure `advance` decides, this module makes the rows.

The first arrival at a vertex with several ways in makes its row, a join that waits. The row becomes the visit itself
when enough branches have arrived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from orchestrator.definition.workflow.advance import (
    Advance,
    Arrivals,
    ReadJoins,
    Settled,
    advance,
    is_starved,
)
from orchestrator.definition.workflow.conditions import condition_of, name_condition
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.rows import Each
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.workflows import redoing, retrying
from orchestrator.engine.change.workflows.visits import make_elements
from orchestrator.engine.change.workflows.workflow_change import (
    UNBLOCKED,
    WorkflowChange,
)
from orchestrator.engine.sql import tables
from orchestrator.engine.sql.connection import allow_idle_for_rows, is_aborted
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.engine.storage.application_code.errors import FROM_APPLICATION
from orchestrator.exceptions import (
    InvalidMessage,
    NoCase,
    Permanent,
    TransactionAborted,
)
from orchestrator.models import Blocked, StepKind, StepRun, StepStatus


def follow_settled(change: WorkflowChange, settled: Settled) -> None:
    """Start the visits that follow a settled one.

    Raises:
        NoCase: no way on fits the result.
    """
    Following(change).go_on(settled)


def decide(change: WorkflowChange, settled: Settled, look: ReadJoins) -> Advance:
    """Return the pure core's decision about a settled visit; the error of a predicate has its secrets noted.

    Args:
        change: the change of the process; it is only read.
        settled: the visit.
        look: reads the arrivals of joins.

    Raises:
        NoCase: no way on fits the result.
        Exception: any error of a predicate.
    """
    given = (change.plan, settled, look)
    if not change.plan[settled.step].decides:
        return advance(*given)  # without a predicate: no code of the application runs
    try:
        name = f"a condition behind {settled.step}"
        return call_application(name, advance, *given, ours=(NoCase,))
    except Exception as error:
        _note_origin(error, settled.step)
        _note_secrets(change, settled.result, error)
        raise


def _note_origin(error: Exception, step: str) -> None:
    """Note that an error of a decision came out of the application's conditions, unless it is the engine's NoCase."""
    if condition_of(error):
        vars(error).setdefault(FROM_APPLICATION, True)  # a NoCase too
    elif isinstance(error, Permanent | TransactionAborted):
        name_condition(error, step)  # which of its conditions is not known


def _note_secrets(change: WorkflowChange, result: Any, error: Exception) -> None:
    """Note the secrets of a result, and of the process's data, with an error of a condition or of a map's list."""
    names = definitions.workflow_of(change.instance).secrets(change.plan).names
    if not names:
        return
    secret_values.attach(error, names, result)
    if not is_aborted(connection):  # else the data cannot be read
        secret_values.attach(error, names, change.instance.data)


class Following:
    """Starts the visits that follow in one change, and settles the empty maps among them."""

    def __init__(self, change: WorkflowChange) -> None:
        self.change = change
        self.emptied: list[StepRun] = []
        """Maps without elements: they are done at once."""
        self._result: Any = None
        self._joins = change.joins

    def go_on(self, settled: Settled) -> None:
        """Start the visits that follow a settled one.

        Raises:
            NoCase: no way on fits the result.
        """
        self._result = settled.result
        self.carry_out(decide(self.change, settled, self.look))

    def carry_out(self, found: Advance) -> None:
        """Make rows of the pure core's decision."""
        allow_idle_for_rows(len(found.entered) + len(found.not_taken))
        self.change.edge = ",".join(filter(None, [self.change.edge, *found.taken]))
        for name in found.not_taken:
            self._pass_over(name, found.joins.pop(name, None))
        for name, number in found.entered:
            self._begin(self.change.plan[name], number, found.joins.pop(name, None))
        for name, arrivals in found.joins.items():
            self._arrive(name, arrivals)
        self._cancel(found.given_up)
        while self.emptied:  # only now: these visits must see the whole decision
            head = self.emptied.pop(0)
            self.go_on(Settled(head.node, head.visit, result=[]))
        self._cancel(found.caught)

    def _cancel(self, names: Sequence[str]) -> None:
        """Cancel the open visits of these steps, and start those that follow; a join that waits has not started."""
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
        for node in {run.node for run in ended if run.redo}:  # settled before
            redoing.wake_readers(self.change, node)
        # A cancelled visit that had failed needs no person any more: the visits that its failure cancelled go on.
        self._revive({run.node for run in stored if run.status == StepStatus.FAILED})

    def _dropped(self, names: Sequence[str]) -> list[StepRun]:
        """Cancel the visits of these steps that this change has begun."""
        begun = [row for row in self.change.fresh if row.kind != StepKind.JOIN]
        found = [row for row in begun if row.node in names and row.finished_at is None]
        for row in found:
            self.change.drop(row)
        return found

    def _revive(self, failed: Collection[str]) -> None:
        """Revive the visits that the failure of these steps had cancelled."""
        if failed:
            self.change.flush()
        for node in sorted(failed):
            retrying.revive(self.change, node)

    def _for_good(self, names: Sequence[str]) -> list[StepRun]:
        """Settle the visits of these steps that a failure had cancelled until a retry: they stay cancelled."""
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
        """Return the arrivals of joins, as stored and as this change has made them."""
        self.read(names)
        return {
            name: arrivals_of(row, over=self._is_over(row))
            for name in names
            if (row := self._joins.get(name)) is not None
        }

    def read(self, names: Iterable[str]) -> None:
        """Read the joins of these steps that this change does not know yet."""
        unknown = [name for name in names if name not in self._joins]
        if not unknown:
            return
        self._joins |= dict.fromkeys(unknown)
        if not self.change.new:
            self._joins |= tables.joins.of(self.change.instance.pk, unknown)

    def _is_over(self, row: StepRun) -> bool:
        """Whether a join has started, or was cancelled while it waited."""
        cancelled = row.finished_at is not None or row.pk in self.change.closed
        return row.kind != StepKind.JOIN or cancelled

    def _arrive(self, name: str, now: Arrivals) -> None:
        """Count another branch that has come to a join, which waits or has started before."""
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
        """Mark a step on a branch that was not taken."""
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
        """Start a step."""
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
        """Turn the row that this change has made for a join into the visit itself."""
        for name in FIRED:
            setattr(waiting, name, getattr(row, name))
        self.change.keep(waiting)
        self.change.touch(waiting, waiting.status)
        self.change.wake(waiting)
        return waiting

    def _fire(self, waiting: StepRun, row: StepRun) -> None:
        """Turn the stored row of a join that waited into the visit itself."""
        row.pk = waiting.pk
        values = {name: getattr(row, name) for name in FIRED}
        self.change.count(row, values, kind=StepKind.JOIN)
        self.change.touch(row, row.status)
        self.change.wake(row)

    def _spread(self, each: Each, head: StepRun) -> None:
        """Start a map: a row for the whole map, and one for each element."""
        try:  # the list may be a property of the result's class
            given = (each, head, self._result)
            ours = (InvalidMessage,)
            rows = call_application(head.node, make_elements, *given, ours=ours)
        except Exception as error:
            name_condition(error, str(each))
            _note_secrets(self.change, self._result, error)
            raise
        allow_idle_for_rows(len(rows))
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
    """Return the arrivals of a join, from its row."""
    return Arrivals(row.arrived, row.taken, over, failed_branches(row))


def join_columns(now: Arrivals) -> dict[str, Any]:
    """Return the columns of a join's arrivals; a join that no longer counts has none.

    After its step has started, the progress belongs to the step.
    """
    found: dict[str, Any] = {"arrived": now.arrived, "taken": now.taken}
    if not now.fired:
        found["progress"] = {"failed": now.failed} if now.failed else None
    return found


def start_join(row: StepRun, vertex: Vertex, now: Arrivals, at: datetime) -> None:
    """Start a join's step; a step that lacks branches runs at once, and fails, whatever its kind is."""
    row.arrived, row.taken = now.arrived, now.taken
    if is_starved(vertex, now):
        row.progress = {"failed": now.failed} if now.failed else None
        row.status, row.wake_at = StepStatus.READY, at


def failed_branches(row: StepRun) -> int:
    """Return how many branches of a waiting join have failed."""
    return int((row.progress or {}).get("failed", 0))


def _is_stored(row: StepRun) -> bool:
    """Whether a join's row is stored already: this change has not made it."""
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
"""The columns of a join's row that change when its step starts."""
