"""One change of one workflow: the rows that it settles, makes, cancels and has undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from orchestrator.conf import conf
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.engine.change import incidents, offering
from orchestrator.engine.change.application_code import applications
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.change.visits import (
    comes_to_its_end,
    done_visits,
    undo_of,
    visit,
)
from orchestrator.engine.storage import definitions, idle_limit
from orchestrator.engine.storage.batch import Batch, Statement, database_now
from orchestrator.engine.storage.row_statements import Update
from orchestrator.engine.storage.tables import instances, step_runs
from orchestrator.exceptions import InvalidDefinition, InvalidMessage
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
"""The columns of a visit that nothing holds back."""

AT_WORK = (StepStatus.READY, StepStatus.RUNNING)


class WorkflowChange(ProcessChange):
    """One change of one locked instance of a workflow.

    Args:
        instance: the locked row, or a new one that is not stored yet.
        cause: what moves it, unique within the process.
        now: the database's time.
        plan: what it runs on.
        queue: the workflow's own.
        owner: the worker that goes on with what starts, if it can; "" for none.
        at: the queue that this worker is at.
        room: with how many of the steps that start it goes on.
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
        """That of the visit that is settled; what follows from it has the same."""
        self.closed: set[int] = set()
        self.joins: dict[str, StepRun | None] = {}
        """The joins as this change has read or made them, by their steps; None for one that had no row."""
        self.counted: dict[int, Update] = {}
        """What it writes of the joins that were stored before, by their keys: each is written once."""
        self.revived: set[str] = set()
        """The steps whose failure holds nothing back any more."""

    @classmethod
    def of(
        cls, instance: ProcessInstance, cause: Cause, now: datetime
    ) -> WorkflowChange:
        """A change of a locked workflow.

        Raises:
            UnknownDefinition: the running code no longer has its definition.
        """
        queue = definitions.workflow_of(instance).queue
        return cls(instance, cause, now, plan_of(instance), queue)

    # Settling visits

    def close(self, run: StepRun, status: StepStatus, **values: Any) -> None:
        """Settles a visit that this attempt holds."""
        # Alone it may have been claimed before the process was read.
        still = {"blocked": ""} if self.alone else {}
        self._close(run, status, values, {**run.fence, **still})

    def close_open(self, run: StepRun, status: StepStatus, **values: Any) -> None:
        """Settles an open visit, whoever holds it; with one that is cancelled its sub-process is."""
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
            self.mark(incidents.resolved(Text(status), self.now, step_run_id=run.pk))
        self._count_out(run, status)

    def _over(self) -> dict[str, Any]:
        """The columns of a visit that is over."""
        return {
            **UNBLOCKED,
            "wake_at": None,
            "owner": "",
            "finished_at": self.now,
            "left": self.revision,
        }

    def _count_out(self, run: StepRun, status: StepStatus) -> None:
        self.closed.add(run.pk)
        self.instance.open_steps -= 1
        self.touch(run, status)

    def touch(self, run: StepRun, status: str) -> None:
        """Notes for the checkpoint and for live pages that a step has changed."""
        self.steps[run.node] = (
            str(status) if run.kind != StepKind.ITEM else StepStatus.RUNNING
        )

    def give_up(self, names: Sequence[str], because: str) -> None:
        """Cancels the open visits of these steps until somebody has seen to the one that failed.

        Args:
            names: the steps. A join that waits stays: it comes to life again with its branches.
            because: the step that failed.
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
        """Cancels a visit that this same change has made."""
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
        idle_limit.allow_rows(len(found))
        return found

    # Joins

    def count(self, row: StepRun, values: Mapping[str, Any], **where: Any) -> None:
        """Writes how a stored join stands now, or the visit that it has become; all this change knows, as one write."""
        found = self.counted.get(row.pk)
        if found is None:
            self.counted[row.pk] = step_runs.update(values, {"id": row.pk, **where})
            self.mark(self.counted[row.pk])
        else:
            found.values = {**found.values, **values}
            found.where = {**found.where, **where}

    # New visits

    def new_visit(self, vertex: Vertex, number: int = 1) -> StepRun:
        row = visit(vertex, self.instance.pk, self.queue, self.revision, self.now)
        row.visit, row.round = number, self.round
        return row

    def keep(self, row: StepRun) -> None:
        """Takes a step up in the same commit that starts it, if this worker can go on with it."""
        ready = row.status == StepStatus.READY and row.queue == self.at
        if self.owner and len(self.mine) < self.room and ready:
            row.owner, row.attempt, row.status = self.owner, 1, StepStatus.RUNNING
            row.wake_at = self.now + timedelta(seconds=conf().LEASE_SECONDS)
            self.mine.append(row)

    def add(self, row: StepRun) -> None:
        """A new visit."""
        self.fresh.append(row)
        self.instance.open_steps += row.finished_at is None
        self.touch(row, row.status)
        self.wake(row)

    def wake(self, row: StepRun) -> None:
        """Has others told of work that this worker does not do itself."""
        if not row.owner and row.wake_at is not None and row.wake_at <= self.now:
            self.rings.add(row.queue)

    # Cancelling and undoing all of it

    def stop(self, *, undo: bool = False, by: Text = incidents.CANCELLED) -> None:
        """Cancels everything that is open, sub-processes too; what nobody adds then ends the process.

        Args:
            undo: whether a step that is just running and can be undone comes to its end first (else its effect would
                stay), and whether sub-processes undo what they have done.
            by: what is said to have settled the incidents about it.
        """
        self.undoing = True
        cancelled = {"status": StepStatus.CANCELLED, **self._over()}
        mine = {"instance_id": self.instance.pk, "finished_at": None}
        for reason in {run.blocked for run in self._given_up(undo, by)}:
            same = {**mine, "blocked": reason}
            self.mark(step_runs.update(cancelled, same, rows=None))

    def undo(self) -> None:
        """Cancels everything that is open and starts to undo. With nothing to undo the process ends."""
        self.stop(undo=True)
        done = done_visits(self.instance, self.plan)
        idle_limit.allow_rows(len(done))
        for number, run in enumerate(done):
            self.undo_visit(run, begins=number == 0)

    def undo_visit(self, run: StepRun, *, begins: bool) -> None:
        """Has a finished visit undone, now or when its turn comes."""
        self.add(undo_of(run, self.plan, self.revision, self.now, begins=begins))

    def _given_up(self, undo: bool, by: Text) -> list[StepRun]:
        """The open visits that are cancelled now, with their incidents and sub-processes."""
        found = []
        idle_limit.allow_rows(self.instance.open_steps)
        runs = self.instance.step_runs.filter(finished_at=None)
        for run in runs.exclude(pk__in=self.closed).defer("result", "element", "saved"):
            if undo and comes_to_its_end(run, self.plan):
                later = {"id": run.pk, "finished_at": None}
                self.mark(step_runs.update({"blocked": Blocked.UNDOING}, later))
                continue
            found.append(run)
            self.instance.open_steps -= 1
            self.touch(run, StepStatus.CANCELLED)
            if run.error:
                self.mark(incidents.resolved(by, self.now, step_run_id=run.pk))
            if run.child_id is not None:
                cancel_child(run, self, undo=undo)
        return found

    # How it is written

    def prepared(self) -> list[Statement]:
        """All its writes; a process with nothing open has ended."""
        if self.instance.open_steps == 0:
            ended = Status.CANCELLED if self.undoing else Status.COMPLETED
            self.instance.status, self.instance.finished_at = ended, self.now
        self._insert_fresh()
        return super().prepared()

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
        elif self.troubled or self.was == Status.PAUSED or self.plan.waits:
            self.look_again()
        elif self.instance.status not in TROUBLED:
            self.instance.status = Status.RUNNING

    def flush(self) -> None:
        super().flush()
        self.counted.clear()  # it has been sent

    def columns(self) -> dict[str, Any]:
        return {"open_steps": self.instance.open_steps}

    def awaited(self) -> offering.Types:
        waits = {row.node for row in self.fresh if row.kind == StepKind.WAIT}
        waits |= {node for node, how in self.steps.items() if how == StepStatus.WAITING}
        if self.alone:
            return offering.awaited_at(self.plan, waits)
        waiting = self.instance.step_runs.filter(kind=StepKind.WAIT, finished_at=None)
        stored = waiting.exclude(pk__in=self.closed).values_list("node", flat=True)
        return offering.awaited_at(self.plan, waits | set(stored))

    def shown(self) -> tuple[list[str], Any]:
        return list(self.steps), self.instance.data if self.new else {}

    def send(self, batch: Batch) -> None:
        # Alone, its revision tells whether the process was still what it is here.
        if self.alone:
            batch.commit()
        else:
            batch.send()


def plan_of(instance: ProcessInstance) -> Plan:
    """The plan that a workflow runs on; its graph may be made by the application's own function.

    Raises:
        UnknownDefinition, InvalidDefinition, InvalidMessage: the running code has none for it.
        Exception: whatever that function raises.
    """
    definitions.workflow_of(instance)
    with applications(InvalidDefinition, InvalidMessage):
        return definitions.plan_of(instance)


def cancel_child(run: StepRun, parent: ProcessChange, *, undo: bool = True) -> None:
    """Cancels the sub-process of a step that no longer waits for it; what it has done is undone, unless told not to.

    One that stands still goes on for that, unless its parent stands still too.
    """
    child = locked_child(run)
    if child is None or child.finished_at is not None:
        return
    if child.step_runs.filter(kind=StepKind.UNDO).exists():
        return  # it is on its way out by itself
    cause = Cause.of(CauseKind.PARENT, run.pk)
    change = WorkflowChange.of(child, cause, database_now())
    if not parent.paused:
        change.go_on()
    if undo:
        change.undo()
    else:
        change.stop()
    change.write()


def locked_child(run: StepRun) -> ProcessInstance | None:
    """The sub-process of a step, locked: whether it has ended is then known for good."""
    return instances.lock(run.child_id)[0]
