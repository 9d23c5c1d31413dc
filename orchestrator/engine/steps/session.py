"""The visits of one process that one worker runs one after another.

1. read what the function needs; 2. call it, watched; 3. in one commit: lock the process, settle the visit under its
fence, carry out what follows, and take one of the steps that start; 4. go on with that one. The result of a quick
function is held instead of 3., and stored together with others' (`group`). Whatever goes wrong is stored with the visit
(`failures.of_step`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction
from uuid6 import uuid7

from orchestrator.definition.codec import decode
from orchestrator.definition.invalid import is_asynchronous
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import (
    application_code,
    incidents,
    retrying,
    secret_values,
    settling,
    starting,
)
from orchestrator.engine.change.joins import check_branches
from orchestrator.engine.change.workflow import WorkflowChange, plan_of
from orchestrator.engine.claims import give_back, leases
from orchestrator.engine.claims.held import HOLD_SECONDS, Holding
from orchestrator.engine.claims.watching import watched
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.failures import of_step
from orchestrator.engine.steps import subprocesses
from orchestrator.engine.steps.attempts import (
    check_attempts,
    check_start,
    has_room,
    other_queue,
    policy_of,
)
from orchestrator.engine.steps.clock import Clock
from orchestrator.engine.steps.context import (
    AwaitedStep,
    Elsewhere,
    RunningStep,
    awaiting,
    waited_for,
)
from orchestrator.engine.storage import definitions, uncertain
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.engine.storage.results import (
    Results,
    intact,
    result_columns,
    sealed,
)
from orchestrator.engine.storage.tables import instances, step_runs
from orchestrator.exceptions import (
    HandlerMissing,
    LeaseLost,
    Outcome,
    Skip,
)
from orchestrator.models import (
    Cause,
    CauseKind,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.registry import in_use

HELD = (StepKind.STEP, StepKind.ITEM)
"""The visits whose results may be held, and so be stored by others."""


class HeldResult(NamedTuple):
    """A result that is not stored yet.

    Args:
        session: of its process.
        run: the claimed visit.
        result: what its function gave.
        given: the columns in which that is stored.
        kept: whether who holds it keeps it when the database refuses for now, and tries again.
    """

    session: Session
    run: StepRun
    result: Any
    given: dict[str, Any]
    kept: bool = False


class Session:
    """The visits of one process that one worker runs one after another."""

    def __init__(
        self,
        instance: ProcessInstance,
        plan: Plan,
        worker_slice: WorkerSlice,
        quick: Holding[HeldResult],
    ) -> None:
        self.instance = instance
        self.plan = plan
        self.worker_slice = worker_slice
        self.results = Results(instance, plan)
        self.quick = quick
        self.workflow = definitions.workflow_of(instance)
        self.clock = Clock()
        self.held_at = time.monotonic()
        """When the visit that is run was this worker's for sure."""
        self.sure = True
        """Whether what is known of the process was stored so; a change counts before it is written, and may not be."""
        self.ended: set[int] = set()
        """The visits that were ended here with others, some of which may have been taken up before."""

    @classmethod
    def of(
        cls, run: StepRun, worker_slice: WorkerSlice, quick: Holding[HeldResult]
    ) -> Session | None:
        """The session of a claimed visit; None when its process has ended, or cannot be run here, which is stored."""
        instance, now = instances.read(run.instance_id)
        clock = Clock(now)  # before the plan is made, which may take its time
        if instance is None or instance.finished_at is not None:
            return None
        if instance.paused_at is not None:
            _put_to_rest(run)
            return None
        try:
            session = cls(
                instance, _plan_of(run, instance, worker_slice), worker_slice, quick
            )
            session.clock = clock
            return session
        except Exception as error:  # noqa: BLE001  # the running code may have no such definition
            of_step.of_step(run, error, None, Policy())
            return None

    def go_through(self, run: StepRun, held_at: float) -> None:
        """Runs a visit, and those that follow it here.

        Args:
            run: the visit.
            held_at: a monotonic time at which it was this worker's.
        """
        following: StepRun | None = run
        while following is not None:
            self.held_at = held_at
            following = self.run(following)
            held_at = time.monotonic()

    def run(self, run: StepRun) -> StepRun | None:
        """Runs one visit to its end, and gives the one that this worker goes on with."""
        vertex = self.plan.vertices.get(run.node)
        policy = policy_of(run, vertex)
        # Until what came of it is stored: neither a predicate that hangs nor a death in between goes unnoticed.
        with watched(run, self.worker_slice, policy.timeout):
            try:
                return self._run(run, vertex, policy)
            except Exception as error:  # noqa: BLE001  # a step may raise anything
                return self.failed(run, error, policy)

    def _run(
        self, run: StepRun, vertex: Vertex | None, policy: Policy
    ) -> StepRun | None:
        if vertex is None:
            raise HandlerMissing(
                "%(name)s has no step %(step)s now", self.instance.name, run.node
            )
        if queue := other_queue(run, vertex):
            give_back.to_queue(run, queue)
            return None
        check_attempts(run, policy)
        check_branches(run, vertex)
        if not has_room(run, self.instance.name, policy):
            give_back.wait_for_room(run)
            return None
        if vertex.step.definition is not None and run.kind != StepKind.UNDO:
            return self._run_subprocess(run, vertex)
        return self._run_function(run, vertex, policy)

    def failed(self, run: StepRun, error: Exception, policy: Policy) -> StepRun | None:
        """Stores what a failed attempt leads to, and gives the visit that this worker goes on with."""
        if isinstance(error, Skip):
            return self.settle_singly(run, error.result, skip=error)
        self._keep_secrets_out(error, run)
        self.forget()
        of_step.of_step(run, error, self.plan, policy)
        return None

    def settle_singly(
        self,
        run: StepRun,
        result: Any,
        skip: Skip | None = None,
        *,
        kept: bool = False,
    ) -> StepRun | None:
        """Settles a visit in a transaction of its own, and gives the one that this worker goes on with.

        What goes wrong with that is stored.

        Args:
            run: the visit.
            result: what its function gave.
            skip: how it passed itself over.
            kept: whether the result is kept when the database refuses for now.

        Raises:
            DatabaseError: it refused for now, and the result is kept.
        """
        try:
            with self.committing():
                return self._settle(run, result, skip=skip)
        except Exception as error:
            self._keep_secrets_out(error, run, result)
            self.forget()
            if kept and passes(error):
                uncertain.note()
                raise
            policy = policy_of(run, self.plan.vertices.get(run.node))
            of_step.of_step(run, error, self.plan, policy)
        return None

    def _keep_secrets_out(
        self, error: Exception, run: StepRun, result: Any = None
    ) -> None:
        """Has what is told of an error written without the secrets that its step was called with, or has given."""
        names = self.workflow.secrets(self.plan).names
        own = (run.element, run.saved, run.result, result)
        secret_values.note(error, names, self.instance.data, self.results.read, *own)

    # Functions

    def _run_function(
        self, run: StepRun, vertex: Vertex, policy: Policy
    ) -> StepRun | None:
        if policy.transactional:
            with self.committing():
                instances.lock(run.instance_id)
                with application_code.kept_waiting(run.node):
                    result = self._call(run, vertex, policy)
                return self._settle(run, result)
        if self.quick:
            self.worker_slice.held.calling()
        begun = time.monotonic()
        result = (
            decode(vertex.returns, run.result)
            if _has_returned(run)
            else self._call(run, vertex, policy)
        )
        quick = time.monotonic() - begun < HOLD_SECONDS
        if quick and self.may_be_held(run, vertex, policy):
            given = result_columns(run, vertex.returns, result)
            self.quick.hold(run.pk, HeldResult(self, run, result, given))
            return None
        return self.returned(run, result)

    def returned(self, run: StepRun, result: Any) -> StepRun | None:
        """Settles a visit whose function has returned, and gives the visit that this worker goes on with.

        Raises:
            Exception: no way on fits the result, or the database refused.
        """
        try:
            return self._settle_by_itself(run, result)
        except Exception:
            self.forget()
            raise

    def _settle_by_itself(self, run: StepRun, result: Any) -> StepRun | None:
        if self.is_alone(run):
            try:
                following = self._settle(run, result, alone=True)
            except LeaseLost:
                pass  # the process was changed meanwhile: now with its lock, which tells
            else:
                self.sure = True
                return following
        with self.committing():
            return self._settle(run, result)

    def may_be_held(self, run: StepRun, vertex: Vertex, policy: Policy) -> bool:
        """Whether a result may wait for others: what follows is the engine's alone to decide, and brief.

        What was done must be known to undo it, and what must not be done twice is stored at once. Of a map's elements
        the last one is stored by itself if the application decides what follows (`group`); one whose result others had
        to store may be just that, and have held up its worker.
        """
        if not policy.idempotent or vertex.undo is not None:
            return False
        if run.error or run.redo or run.blocked:
            return False
        if run.kind == StepKind.ITEM:
            return not (vertex.decides and run.checksum)
        spreads = any(self.plan[link.target].each for link in vertex.links)
        return run.kind in HELD and not vertex.decides and not spreads

    def is_alone(self, run: StepRun) -> bool:
        """Whether this visit is all that is open, as far as this session knows; the revision will tell."""
        instance = self.instance
        return bool(
            instance.open_steps == 1
            and self.sure
            and instance.status in (Status.RUNNING, Status.WAITING)
            and run.kind == StepKind.STEP
            and not run.error
            and not run.redo
            and not run.blocked
        )

    def _call(self, run: StepRun, vertex: Vertex, policy: Policy) -> Any:
        """Calls the step's function.

        Raises:
            Exception: whatever it raises, or the outcome that it returns.
            LeaseLost: what it is called with was so long in coming that others may have run it.
        """
        work = leases.name_of(step_runs, run.pk)
        with self.worker_slice.watch(
            policy.timeout, work, policy.heartbeat
        ) as reporting:
            # Until it is called the function has nothing to report, and what goes wrong is not its own.
            with reporting(), application_code.engines():
                context = RunningStep(self.instance, run, policy.timeout, reporting)
                function, arguments = self.bound(run, vertex, context)
                self._check_held(run)
            result = application_code.call(function, arguments, run.node)
        if isinstance(result, Outcome):
            raise result
        return result

    def _check_held(self, run: StepRun) -> None:
        """Raises LeaseLost when a visit has been prepared for so long that others may have taken it over."""
        if leases.may_end(self.held_at):
            uncertain.note()
            raise LeaseLost(f"what {run.node} is called with was long in coming")

    def bound(
        self,
        run: StepRun,
        vertex: Vertex,
        context: RunningStep,
        elsewhere: Elsewhere | None = None,
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function of a visit, and its arguments.

        Args:
            run: the claimed visit.
            vertex: its step.
            context: of the attempt.
            elsewhere: how an asynchronous function's context reaches the thread that has the engine's connection; None
                to have it awaited here, alone.

        Raises:
            HandlerMissing: the running code has none.
            CorruptInput, InvalidMessage: as `Results.arguments`.
        """
        undo = run.kind == StepKind.UNDO
        step = vertex.undo if undo else vertex.step
        if step is None or step.function is None:
            raise HandlerMissing(
                "nothing runs for %(step)s in the running code", run.node
            )
        bindings = vertex.undo_bindings if undo else vertex.bindings
        function = in_use(step.function)
        if is_asynchronous(step.function) or is_asynchronous(function):
            awaited = AwaitedStep(context, elsewhere or sync_to_async)
            arguments = self.results.arguments(bindings, run, awaited)
            wait = waited_for if elsewhere is None else awaiting
            return wait(function, awaited), arguments
        return function, self.results.arguments(bindings, run, context)

    # Sub-processes

    def _run_subprocess(self, run: StepRun, vertex: Vertex) -> StepRun | None:
        """Starts the sub-process of a visit, or settles the visit when the sub-process has ended."""
        if run.child_id is None:
            self._start_subprocess(run, vertex)
            return None
        child = subprocesses.ended(run)
        if child is None or run.status == StepStatus.FAILED:
            with self.committing():
                what = ("wait", run.attempt, self.instance.revision)
                change = self.lock(run, *what)
                retrying.wait_on(change, run)
                change.write()
            return None
        body = subprocesses.result_of(child)
        with self.committing():
            result = subprocesses.read(run, vertex, body)
            return self._store(self.lock(run), run, result, sealed(body))

    def _start_subprocess(self, run: StepRun, vertex: Vertex) -> None:
        definition = subprocesses.definition_of(vertex)
        arguments = self.results.arguments(vertex.bindings, run, None)
        given, pk = subprocesses.input_of(definition, arguments), uuid7()
        pin = starting.pinned(definition, given)
        try:
            with self.committing():
                change = self.lock(run, "child", pk)
                if change.paused:  # meanwhile: nothing new starts
                    send([give_back.rested(run)])
                    return
                subprocesses.start(change, run, pin, pk)
                change.write()
        except IntegrityError:
            subprocesses.explain(definition, given)
            raise

    # Settling

    def _settle(
        self,
        run: StepRun,
        result: Any,
        *,
        skip: Skip | None = None,
        alone: bool = False,
    ) -> StepRun | None:
        """Stores a result and what follows from it, in the running transaction; alone in one of its own."""
        anything = run.kind == StepKind.UNDO or (skip is not None and result is None)
        given = result_columns(
            run, Any if anything else self.plan[run.node].returns, result
        )
        change = self.change_alone(run) if alone else self.lock(run)
        return self._store(change, run, result, given, skip)

    def _store(
        self,
        change: WorkflowChange,
        run: StepRun,
        result: Any,
        given: dict[str, Any],
        skip: Skip | None = None,
    ) -> StepRun | None:
        """Writes the change that settles a visit, and gives the visit that this worker goes on with."""
        status = StepStatus.DONE if skip is None else StepStatus.SKIPPED
        error = "" if skip is None else self._said(skip, run)
        change.close(run, status, **given, error=error)
        settling.follow(change, run, result, status)
        change.write()
        self.ended |= change.closed
        self._learn(run, given)
        return change.mine[0] if change.mine else None

    def _said(self, skip: Skip, run: StepRun) -> str:
        self._keep_secrets_out(skip, run, skip.result)
        return incidents.said(skip)

    def learn(self, stored: HeldResult) -> None:
        """Notes a result that was held and is stored now."""
        self._learn(stored.run, stored.given)

    def _learn(self, run: StepRun, given: dict[str, Any]) -> None:
        if run.kind in (StepKind.STEP, StepKind.RUN):
            self.results.learn(run.node, given["result"])

    def forget(self) -> None:
        """Reads anew what was stored: something noted of it may have been rolled back."""
        self.results.forget()
        self.ended.clear()  # else a step that goes on after all would be left to nobody
        self.sure = False

    @property
    def goes_on(self) -> bool:
        """Whether another visit of the process can be begun by what is known of it."""
        over = self.instance.finished_at is not None
        return self.sure and not over and self.instance.paused_at is None

    @contextmanager
    def committing(self) -> Iterator[None]:
        """A transaction of its own, after which what is known of the process is stored."""
        with transaction.atomic(durable=True):
            yield
        self.sure = True

    def lock(self, run: StepRun, *what: object) -> WorkflowChange:
        """A change of the locked process, caused by this visit; `what` tells several changes of one visit apart.

        Raises:
            LeaseLost: the process is gone or has ended.
        """
        instance, now = instances.lock(run.instance_id)
        if instance is None or instance.finished_at is not None:
            raise LeaseLost("the process has ended")
        if not self.sure or instance.revision != self.instance.revision:
            self.results.read_anew()  # one of them may have been edited or done again
        self.instance = self.results.instance = instance
        return self.change(run, now, *what)

    def change_alone(self, run: StepRun) -> WorkflowChange:
        """A change of a process of which nothing else is open, and which is not locked."""
        change = self.change(run, self.clock.now())
        change.alone = True
        return change

    def _owner(self) -> str:
        """Who goes on with a step that starts: this worker, unless its time is over or the process stands still."""
        over = self.worker_slice.over() or self.instance.paused_at is not None
        return "" if over else self.worker_slice.owner

    def change(self, run: StepRun, now: datetime, *what: object) -> WorkflowChange:
        """A change of the process, as this session knows it, caused by this visit."""
        self.sure = False  # until it is stored
        return WorkflowChange(
            self.instance,
            Cause.of(CauseKind.STEP, run.pk, *what),
            now,
            self.plan,
            self.workflow.queue,
            self._owner(),
            self.worker_slice.queue,
        )


def _plan_of(
    run: StepRun, instance: ProcessInstance, worker_slice: WorkerSlice
) -> Plan:
    """The plan of a visit's process, watched where the application makes its graph, which may hang or end the worker.

    Raises:
        Exception: as `plan_of`.
        WorkerDied: it has ended worker after worker.
    """
    if definitions.is_at_hand(instance):
        return plan_of(instance)
    check_start(run)
    with watched(run, worker_slice):
        return plan_of(instance)


def _has_returned(run: StepRun) -> bool:
    """Whether a function has given its result before, and only that was stored."""
    given = run.kind in HELD and run.checksum and not run.error
    return bool(given) and intact(run)


def _put_to_rest(run: StepRun) -> None:
    """Gives a visit back whose process stands still; where it goes on meanwhile, it is due at once."""
    with transaction.atomic(durable=True):
        instance, now = instances.lock(run.instance_id)
        still = instance is not None and instance.paused_at is not None
        send([give_back.rested(run) if still else give_back.given_back(run, now)])
