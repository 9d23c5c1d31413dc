"""A process as one worker knows it, and the changes that settle the process's visits.

Every error is stored with the visit (`work.step_failures`).
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.transaction import Atomic

from orchestrator.definition.workflow.conditions import condition_of
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.change import incidents, secret_values
from orchestrator.engine.change.workflows import settling
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.batch import Clock
from orchestrator.engine.sql.connection import (
    is_aborted,
    note_uncertain_commit,
    passes,
)
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.steps.attempts import policy_of
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.errors import (
    as_failure,
    from_application,
    from_engine,
)
from orchestrator.engine.storage.results import (
    Results,
    has_returned,
    keep_result,
    result_columns,
)
from orchestrator.engine.work import step_failures
from orchestrator.engine.work.keeping import store_outcome
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.exceptions import HandlerMissing, LeaseLost, Permanent, Skip
from orchestrator.models import (
    Cause,
    CauseKind,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)


class KnownProcess:
    """A process as one worker knows it.

    Args:
        instance: its row.
        plan: its plan.
        worker_slice: the worker's slice.
        clock: the database's time.
    """

    def __init__(
        self,
        instance: ProcessInstance,
        plan: Plan,
        worker_slice: WorkerSlice,
        clock: Clock,
    ) -> None:
        self.instance = instance
        self.plan = plan
        self.worker_slice = worker_slice
        self.clock = clock
        self.results = Results(instance, plan)
        self.workflow = definitions.workflow_of(instance)
        self.sure = True
        """Whether this knowledge agrees with the stored rows; a change counts as known before it is committed."""
        self.last_change: WorkflowChange | None = None
        self.ended: set[int] = set()
        """The visits that this worker's changes have ended; it may have taken some of them up before."""

    # Settling visits

    def settle_failure(
        self, run: StepRun, error: BaseException, *, waits: bool = True
    ) -> StepRun | None:
        """Store the consequence of a failed attempt. Return the visit that this worker goes on with.

        Args:
            run: the visit.
            error: of the attempt.
            waits: whether this worker waits while the database refuses; else the visit is released then.
        """
        error = as_failure(error, run.node)
        if isinstance(error, Skip):
            kept = not waits
            return self.settle_singly(run, error.result, skip=error, kept=kept)
        self._store_failure(run, error, waits=waits)
        return None

    def _store_failure(
        self, run: StepRun, error: Exception, result: Any = None, *, waits: bool
    ) -> None:
        self.keep_secrets_out(error, run, result)
        self.forget()
        policy = policy_of(run, self.plan.vertices.get(run.node))
        here = self.worker_slice if waits else None
        step_failures.fail_run(run, error, self.plan, policy, here)

    def settle_singly(
        self, run: StepRun, result: Any, skip: Skip | None = None, *, kept: bool = False
    ) -> StepRun | None:
        """Settle a visit in a transaction of its own, or store the error. Return the visit to go on with.

        Args:
            run: the visit.
            result: its function's result.
            skip: the `Skip` by which it passed itself over.
            kept: whether the caller keeps the result when the database refuses for now.

        Raises:
            DatabaseError: the database refused for now, and the caller keeps the result.
        """

        def store() -> StepRun | None:
            with self.committing():
                return self.settle(run, result, skip=skip)

        try:
            here = None if kept else self.worker_slice
            return store_outcome(run, here, store, self.forget)
        except BaseException as raised:
            error = as_failure(raised, run.node)
            if kept and passes(error) and not from_application(error):
                self.keep_secrets_out(error, run, result)
                self.forget()
                note_uncertain_commit()
                raise
            self._store_failure(run, error, result, waits=not kept)
        return None

    def keep_secrets_out(
        self, error: Exception, run: StepRun, result: Any = None
    ) -> None:
        """Keep the secrets in a step's arguments and in its result out of the stored error."""
        names = self.workflow.secrets(self.plan).names
        own = (run.element, run.saved, run.result, result)
        secret_values.attach(error, names, self.instance.data, self.results.read, *own)

    def settle_result(self, run: StepRun, result: Any) -> StepRun | None:
        """Settle a visit whose function has returned. Return the visit that this worker goes on with.

        Raises:
            Exception: no way on fits the result, or the database refused.
        """
        run.called = run.called or time.monotonic()  # if an earlier claim has called it
        try:
            return self._settle_by_itself(run, result)
        except BaseException:
            self.forget()
            raise

    def _settle_by_itself(self, run: StepRun, result: Any) -> StepRun | None:
        if self.is_alone(run):
            try:
                following = self.settle(run, result, alone=True)
            except LeaseLost:
                pass  # the process was changed meanwhile: below it is locked
            else:
                self.sure = True
                return following
        with self.committing():
            return self.settle(run, result)

    def settle(
        self,
        run: StepRun,
        result: Any,
        *,
        skip: Skip | None = None,
        alone: bool = False,
    ) -> StepRun | None:
        """Store a result and the visits that follow, in the running transaction; with `alone` in one of its own."""
        anything = run.kind == StepKind.UNDO or (skip is not None and result is None)
        given = result_columns(
            run, Any if anything else self.plan[run.node].returns, result
        )
        skipped = None if skip is None else self._said(skip, run)
        keep_result(run, given, skipped)  # whatever follows may raise
        change = self.change_alone(run) if alone else self.lock(run)
        return self.store(change, run, result, given, skipped)

    def store_undecided(self, run: StepRun, raised: BaseException) -> bool:
        """Store a result alone, in the transaction of its function, since what follows it cannot be decided now.

        Returns:
            Whether it was stored; if not, the transaction is to be rolled back.
        """
        error = as_failure(raised, run.node)
        names = self.workflow.secrets(self.plan).names
        # Noted before the result goes with its transaction.
        secret_values.attach(error, names, run.element, run.saved, run.result)
        sent = self.last_change is None or self.last_change.sent
        if sent or not has_returned(run) or not condition_of(error):
            return False
        # By a statement of the condition, or by a transaction that it has left open.
        if is_aborted(connection) or from_engine(error, Permanent):
            return False
        self.keep_secrets_out(error, run)
        policy = policy_of(run, self.plan[run.node])
        step_failures.settle_failure(run, error, self.plan, policy)
        return True

    def store(
        self,
        change: WorkflowChange,
        run: StepRun,
        result: Any,
        given: dict[str, Any],
        skipped: str | None = None,
    ) -> StepRun | None:
        """Write the change that settles a visit. Return the visit that this worker goes on with.

        Args:
            change: the change.
            run: the visit.
            result: its result, as the type of its step.
            given: the columns of the result.
            skipped: why the visit skipped itself; None if it did not.
        """
        status = StepStatus.DONE if skipped is None else StepStatus.SKIPPED
        change.close(run, status, **given, error=skipped or "")
        settling.follow(change, run, result, status)
        change.write()
        self.ended |= change.closed
        self.learn(run, given)
        return change.mine[0] if change.mine else None

    def _said(self, skip: Skip, run: StepRun) -> str:
        self.keep_secrets_out(skip, run, skip.result)
        return incidents.error_text(skip)

    # Knowledge

    def is_alone(self, run: StepRun) -> bool:
        """Whether this visit is the only open one, as far as this worker knows; the fence on the revision proves it."""
        instance = self.instance
        return bool(
            instance.open_steps == 1
            and self.sure
            and instance.status in (Status.RUNNING, Status.WAITING)
            and run.kind in (StepKind.STEP, StepKind.SLEEP)
            and not run.error
            and not run.redo
            and not run.blocked
        )

    def missing_step(self, run: StepRun) -> HandlerMissing:
        """Return the error of a visit whose step the running code lacks."""
        name = self.instance.name
        return HandlerMissing("%(name)s has no step %(step)s now", name, run.node)

    def learn(self, run: StepRun, given: dict[str, Any]) -> None:
        """Note a result that is stored now."""
        if run.kind in (StepKind.STEP, StepKind.RUN):
            self.results.learn(run.node, given["result"])

    def forget(self) -> None:
        """Forget all knowledge, so that it is read anew: some of it may have been rolled back."""
        self.results.forget()
        self.ended.clear()  # else no worker would run a step that goes on after all
        self.sure = False

    @property
    def goes_on(self) -> bool:
        """Whether another visit of the process can begin by this knowledge."""
        over = self.instance.finished_at is not None
        return self.sure and not over and self.instance.paused_at is None

    def committing(self) -> AbstractContextManager[None]:
        """A transaction of its own, after whose commit the knowledge agrees with the stored rows."""
        return _SureTransaction(self)

    def lock(self, run: StepRun, *what: object) -> WorkflowChange:
        """Lock the process. Return its change, caused by this visit; `what` tells several changes of one visit apart.

        Raises:
            LeaseLost: the process is gone or has ended.
        """
        instance, now = instances.lock_live(run.instance_id)
        if not self.sure or instance.revision != self.instance.revision:
            self.results.read_anew()  # one of them may have been edited or done again
        self.instance = self.results.instance = instance
        return self.change(run, now, *what)

    def change_alone(self, run: StepRun) -> WorkflowChange:
        """Return a change of the process without a lock: this visit is the only open one."""
        change = self.change(run, self.clock.now())
        change.alone = True
        return change

    def _owner(self) -> str:
        """The worker that goes on with a started step: this one, unless its slice is over or the process is paused."""
        over = self.worker_slice.over() or self.instance.paused_at is not None
        return "" if over else self.worker_slice.owner

    def change(self, run: StepRun, now: datetime, *what: object) -> WorkflowChange:
        """Return a change of the process as this session knows it, caused by this visit."""
        self.sure = False  # until it is stored
        cause = Cause.of(CauseKind.STEP, run.pk, *what)
        if run.kind == StepKind.SLEEP:
            cause = Cause.of(CauseKind.DEADLINE, run.pk, run.deadlines_fired)
        self.last_change = WorkflowChange(
            self.instance,
            cause,
            now,
            self.plan,
            self.workflow.queue,
            self._owner(),
            self.worker_slice.queue,
        )
        return self.last_change


class _SureTransaction(Atomic):
    """A transaction, after whose commit a process is known for sure."""

    def __init__(self, process: KnownProcess) -> None:
        super().__init__(using=None, savepoint=True, durable=True)
        self.process = process

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)
        self.process.sure |= failure[0] is None


class HeldResult(NamedTuple):
    """A result that is not stored yet.

    Args:
        session: the session of its process.
        run: the claimed visit.
        result: its function's result.
        given: the columns in which the result is stored.
        kept: whether its holder keeps it when the database refuses for now, and tries again.
    """

    session: KnownProcess
    run: StepRun
    result: Any
    given: dict[str, Any]
    kept: bool = False
