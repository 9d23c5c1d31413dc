"""One change of one workflow: settling, making, cancelling and undoing visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from orchestrator.configuration.conf import conf
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.engine.change import incidents, offering
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.change.workflows.visits import (
    has_effect,
    make_undo,
    make_visit,
    must_end_first,
    undoable_visits,
)
from orchestrator.engine.sql.batch import Batch, Statement, database_now
from orchestrator.engine.sql.connection import allow_idle_for_rows
from orchestrator.engine.sql.row_statements import Update
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    Blocked,
    Cause,
    CauseKind,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.text import Text

UNBLOCKED: dict[str, Any] = {"blocked": "", "blocked_on": ""}
"""The columns of a visit that is not blocked."""

AT_WORK = (StepStatus.READY, StepStatus.RUNNING)


class WorkflowChange(ProcessChange):
    """One change of one locked instance of a workflow.

    Args:
        instance: the locked row, or a new one that is not stored yet.
        cause: the cause, unique within the process.
        now: the database's time.
        plan: the workflow's plan.
        queue: the workflow's queue.
        owner: the worker that goes on with started steps, if it can; "" for none.
        at: the queue of this worker.
        room: the most started steps that it goes on with.
    """

    def __init__(
        self,
        instance: ProcessInstance,
        cause: Cause,
        now: datetime,
        plan: Plan,
        queue: str,
        owner: str = "",
        at: str = "",
        room: int = 1,
    ) -> None:
        super().__init__(instance, cause, now)
        self.plan, self.queue, self.owner, self.at = plan, queue, owner, at
        self.room = room
        self.mine: list[StepRun] = []
        """The visits that this worker goes on with."""
        self.fresh: list[StepRun] = []
        self.undoing = False
        self.round = 1
        """The round of the settled visit; the visits that follow have the same."""
        self.closed: set[int] = set()
        self.has_done = False
        """Whether a visit among the closed ones is done."""
        self.joins: dict[str, StepRun | None] = {}
        """The joins as this change has read or made them, by their steps; None for a join without a row."""
        self.counted: dict[int, Update] = {}
        """The updates of joins that were stored before, by their keys: each join is written once."""
        self.revived: set[str] = set()
        """The failed steps whose cancelled visits this change has revived."""

    @classmethod
    def of(
        cls, instance: ProcessInstance, cause: Cause, now: datetime
    ) -> WorkflowChange:
        """Return a change of a locked workflow.

        Raises:
            UnknownDefinition: the running code no longer has its definition.
        """
        queue = definitions.workflow_of(instance).queue
        return cls(instance, cause, now, definitions.plan_of(instance), queue)

    # Settling visits

    def close(self, run: StepRun, status: StepStatus, **values: Any) -> None:
        """Settle a visit that this attempt holds."""
        # Without a lock, the visit may have been claimed before the process was read.
        still = {"blocked": ""} if self.alone else {}
        self._close(run, status, values, {**run.fence, **still})

    def close_open(self, run: StepRun, status: StepStatus, **values: Any) -> None:
        """Settle an open visit, even one that a worker holds; with a cancelled visit cancel its sub-process."""
        self._close(run, status, values, {"id": run.pk, "finished_at": None})
        if status == StepStatus.CANCELLED and run.child_id is not None:
            cancel_child(run, self)

    def _close(
        self,
        run: StepRun,
        status: StepStatus,
        values: dict[str, Any],
        where: dict[str, Any],
    ) -> None:
        closed = {"status": status, **self._over(), **values}
        if not run.redo:
            self.round = run.round
        self.mark(step_runs.update(closed, where))
        if run.error and status != StepStatus.FAILED:
            self.mark(incidents.resolve(Text(status), self.now, step_run_id=run.pk))
        self._count_out(run, status)

    def _over(self) -> dict[str, Any]:
        """The columns of an ended visit."""
        return {
            **UNBLOCKED,
            "wake_at": None,
            "owner": "",
            "finished_at": self.now,
            "left": self.revision,
        }

    def _count_out(self, run: StepRun, status: StepStatus) -> None:
        self.closed.add(run.pk)
        self.has_done |= status == StepStatus.DONE
        self.instance.open_steps -= 1
        self.touch(run, status)

    def touch(self, run: StepRun, status: str) -> None:
        """Note a step's new status for the checkpoint and for live pages."""
        self.steps[run.node] = (
            str(status) if run.kind != StepKind.ITEM else StepStatus.RUNNING
        )

    def give_up(self, names: Sequence[str], because: str) -> None:
        """Cancel the open visits of these steps until the failed step is retried.

        Args:
            names: the steps. A waiting join stays open, and goes on with its revived branches.
            because: the failed step.
        """
        held = {"blocked": Blocked.FAILURE, "blocked_on": because}
        for run in self.open_visits(names):
            if run.kind != StepKind.JOIN:
                self.close_open(run, StepStatus.CANCELLED, **held)
        for row in self.fresh:
            asleep = row.kind == StepKind.JOIN
            if row.node in names and row.finished_at is None and not asleep:
                self.drop(row)
                row.blocked, row.blocked_on = Blocked.FAILURE, because

    def drop(self, row: StepRun) -> None:
        """Cancel a visit that this same change has made."""
        row.status, row.wake_at, row.owner = StepStatus.CANCELLED, None, ""
        row.finished_at, row.left = self.now, self.revision
        self.instance.open_steps -= 1
        self.mine = [mine for mine in self.mine if mine is not row]
        self.touch(row, row.status)

    def open_visits(self, names: Sequence[str]) -> list[StepRun]:
        if not names:
            return []
        runs = self.instance.step_runs.filter(node__in=names, finished_at=None)
        found = [run for run in runs if run.pk not in self.closed]
        allow_idle_for_rows(len(found))
        return found

    # Joins

    def count(self, row: StepRun, values: Mapping[str, Any], **where: Any) -> None:
        """Write new columns of a stored join, or of the visit that it has become: one update for the whole change."""
        found = self.counted.get(row.pk)
        if found is None:
            self.counted[row.pk] = step_runs.update(values, {"id": row.pk, **where})
            self.mark(self.counted[row.pk])
        else:
            found.values = {**found.values, **values}
            found.where = {**found.where, **where}

    # New visits

    def new_visit(self, vertex: Vertex, number: int = 1) -> StepRun:
        row = make_visit(vertex, self.instance.pk, self.queue, self.revision, self.now)
        row.visit, row.round = number, self.round
        return row

    def keep(self, row: StepRun) -> None:
        """Claim a step in the same commit that starts it, if this worker can go on with it."""
        ready = row.status == StepStatus.READY and row.queue == self.at
        if self.owner and len(self.mine) < self.room and ready:
            row.owner, row.attempt, row.status = self.owner, 1, StepStatus.RUNNING
            row.wake_at = self.now + timedelta(seconds=conf().LEASE_SECONDS)
            self.mine.append(row)

    def add(self, row: StepRun) -> None:
        """Add a new visit."""
        row.definition = self.instance.name
        if row.item is None:
            row.stored_definition_id = self.instance.definition_id
            row.process_started_at = self.instance.started_at
        self.fresh.append(row)
        self.instance.open_steps += row.finished_at is None
        self.touch(row, row.status)
        self.wake(row)

    def wake(self, row: StepRun) -> None:
        """Wake the queue of a due visit, unless this worker goes on with it."""
        if not row.owner and row.wake_at is not None and row.wake_at <= self.now:
            self.to_wake.add(row.queue)

    # Cancelling and undoing the whole process

    def stop(self, *, undo: bool = False, by: Text = incidents.CANCELLED) -> None:
        """Cancel all open visits, and their sub-processes; unless visits are added, the process then ends.

        Args:
            undo: whether a running step that can be undone goes on to its end first (else its effect would stay), and
                whether sub-processes are undone.
            by: the resolution of the visits' incidents.
        """
        self.undoing = True
        cancelled = {"status": StepStatus.CANCELLED, **self._over()}
        mine = {"instance_id": self.instance.pk, "finished_at": None}
        for reason in {run.blocked for run in self._given_up(undo, by)}:
            same = {**mine, "blocked": reason}
            self.mark(step_runs.update(cancelled, same, rows=None))

    def undo(self) -> None:
        """Cancel all open visits and begin to undo. With nothing to undo the process ends."""
        self.stop(undo=True)
        if self.has_done:
            self.flush()  # a query finds them
        done = undoable_visits(self.instance, self.plan)
        allow_idle_for_rows(len(done))
        for number, run in enumerate(done):
            if run.status == StepStatus.CANCELLED:  # before anything followed it
                over = {"status": StepStatus.DONE, **self._over()}
                self.mark(step_runs.update(over, {"id": run.pk}))
            self.undo_visit(run, begins=number == 0)

    def undo_visit(self, run: StepRun, *, begins: bool) -> None:
        """Add the visit that undoes a finished one, now or when its turn comes."""
        self.add(make_undo(run, self.plan, self.revision, self.now, begins=begins))

    def _given_up(self, undo: bool, by: Text) -> list[StepRun]:
        """Return the open visits to cancel; resolve their incidents, and cancel their sub-processes."""
        found = []
        allow_idle_for_rows(self.instance.open_steps)
        runs = self.instance.step_runs.filter(finished_at=None)
        for run in runs.exclude(pk__in=self.closed).defer("result", "element", "saved"):
            if undo and must_end_first(run, self.plan):
                later = {"id": run.pk, "finished_at": None}
                self.mark(step_runs.update({"blocked": Blocked.UNDOING}, later))
                continue
            if undo and has_effect(run, self.plan):
                self.close_open(run, StepStatus.DONE)
                continue
            found.append(run)
            self.instance.open_steps -= 1
            self.touch(run, StepStatus.CANCELLED)
            if run.error:
                self.mark(incidents.resolve(by, self.now, step_run_id=run.pk))
            if run.child_id is not None:
                cancel_child(run, self, undo=undo)
        return found

    # Writing

    def prepare(self) -> list[Statement]:
        """Return all writes; a process without open visits has ended."""
        if self.instance.open_steps == 0:
            ended = Status.CANCELLED if self.undoing else Status.COMPLETED
            self.instance.status, self.instance.finished_at = ended, self.now
        self._insert_fresh()
        return super().prepare()

    def _comes_to_its_end(self) -> bool:
        return self.undoing or super()._comes_to_its_end()

    def _insert_fresh(self) -> None:
        if mine := [row for row in self.fresh if row.owner]:
            self.writes.append(step_runs.insert_known(*mine))
        self.writes += step_runs.inserts([row for row in self.fresh if not row.owner])

    def settle_status(self) -> None:
        if self.instance.finished_at is not None:
            return
        if self.alone:
            busy = any(row.status in AT_WORK for row in self.fresh)
            self.instance.status = Status.RUNNING if busy else Status.WAITING
        elif self.troubled or self.before == Status.PAUSED or self.plan.waits:
            self.look_again()
        elif self.instance.status not in TROUBLED:
            self.instance.status = Status.RUNNING

    def flush(self) -> None:
        super().flush()
        self.counted.clear()  # the updates were sent

    def columns(self) -> dict[str, Any]:
        return {"open_steps": self.instance.open_steps}

    def awaited_types(self) -> offering.Types:
        waits = {row.node for row in self.fresh if row.kind == StepKind.WAIT}
        waits |= {node for node, how in self.steps.items() if how == StepStatus.WAITING}
        if self.alone:
            return offering.types_awaited_at(self.plan, waits)
        waiting = self.instance.step_runs.filter(kind=StepKind.WAIT, finished_at=None)
        stored = waiting.exclude(pk__in=self.closed).values_list("node", flat=True)
        return offering.types_awaited_at(self.plan, waits | set(stored))

    def checkpoint_state(self) -> tuple[list[str], Any]:
        return list(self.steps), self.instance.data if self.new else {}

    def send(self, batch: Batch) -> None:
        # Without a lock, the fence on the revision proves that the process has not changed.
        if self.alone:
            batch.commit()
        else:
            batch.send()


def cancel_child(run: StepRun, parent: ProcessChange, *, undo: bool = True) -> None:
    """Cancel the sub-process of a step that no longer waits for it, and undo it unless `undo` is false.

    A paused sub-process is resumed for that, unless its parent is paused too.
    """
    child = lock_child(run)
    if child is None or child.finished_at is not None:
        return
    if child.step_runs.filter(kind=StepKind.UNDO).exists():
        return  # it is being undone already
    cause = Cause.of(CauseKind.PARENT, run.pk)
    parent.sent = True
    change = WorkflowChange.of(child, cause, database_now())
    if not parent.paused:
        change.go_on()
    if undo:
        change.undo()
    else:
        change.stop()
    change.write()


def lock_child(run: StepRun) -> ProcessInstance | None:
    """Return the sub-process of a step, locked, so that its status stays."""
    return instances.lock(run.child_id)[0]
