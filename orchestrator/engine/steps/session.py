"""The visits of one process that one worker runs one after another.

1. read what the function needs; 2. call it, watched; 3. in one commit: lock the process, settle the visit under its
fence, carry out what follows, and take one of the steps that start; 4. go on with that one. Whatever goes wrong is
stored with the visit (`failures.of_step`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction
from uuid6 import uuid7

from orchestrator.conf import conf
from orchestrator.definition.codec import decode
from orchestrator.definition.invalid import is_asynchronous
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import (
    application_code,
    maps,
    retrying,
    settling,
    starting,
)
from orchestrator.engine.change.joins import check_branches
from orchestrator.engine.change.workflow import WorkflowChange, plan_of
from orchestrator.engine.claims import give_back, leases
from orchestrator.engine.claims.held import HOLD_SECONDS
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.failures import of_step
from orchestrator.engine.steps import subprocesses
from orchestrator.engine.steps.attempts import (
    check_attempts,
    has_room,
    other_queue,
    policy_of,
)
from orchestrator.engine.steps.clock import Clock
from orchestrator.engine.steps.context import AwaitedStep, Elsewhere, RunningStep
from orchestrator.engine.steps.quick_results import (
    HeldResult,
    QuickResults,
    still_mine,
)
from orchestrator.engine.storage import definitions
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
    Work,
)
from orchestrator.registry import in_use

log = logging.getLogger(__name__)


class Session:
    """The visits of one process that one worker runs one after another."""

    def __init__(
        self, instance: ProcessInstance, plan: Plan, worker_slice: WorkerSlice
    ) -> None:
        self.instance = instance
        self.plan = plan
        self.worker_slice = worker_slice
        self.results = Results(instance, plan)
        self.quick = QuickResults(worker_slice.held)
        self.workflow = definitions.workflow_of(instance)
        self.clock = Clock()

    @classmethod
    def of(cls, run: StepRun, worker_slice: WorkerSlice) -> Session | None:
        """The session of a claimed visit; None when its process has ended, or cannot be run here, which is stored."""
        instance, now = instances.read(run.instance_id)
        clock = Clock(now)  # before the plan is made, which may take its time
        if instance is None or instance.finished_at is not None:
            return None
        if instance.paused_at is not None:
            _put_to_rest(run)
            return None
        try:
            session = cls(instance, plan_of(instance), worker_slice)
            session.clock = clock
            return session
        except Exception as error:  # noqa: BLE001  # the running code may have no such definition
            of_step.of_step(run, error, None, Policy())
            return None

    def go_through(self, run: StepRun) -> None:
        """Runs a visit, and those that follow it here."""
        following: StepRun | None = run
        while following is not None:
            following = self.run(following)

    def run(self, run: StepRun) -> StepRun | None:
        """Runs one visit to its end, and gives the one that this worker goes on with."""
        vertex = self.plan.vertices.get(run.node)
        policy = policy_of(run, vertex)
        try:
            if vertex is None:
                raise HandlerMissing(f"{self.instance.name} has no step {run.node} now")
            if queue := other_queue(run, vertex):
                give_back.to_queue(run, queue)
                return None
            check_attempts(run, policy)
            check_branches(run, vertex)
            if not has_room(run, self.instance.name, policy):
                give_back.wait_for_room(run)
                return None
            # Until the result is stored, so that neither a predicate that hangs nor a death in between goes unnoticed.
            most = policy.timeout + conf().EVENT_TIMEOUT
            with self.worker_slice.watch(most, leases.name_of(step_runs, run.pk)):
                if vertex.step.definition is not None and run.kind != StepKind.UNDO:
                    return self._run_subprocess(run, vertex)
                return self._run_function(run, vertex, policy)
        except Exception as error:  # noqa: BLE001  # a step may raise anything
            return self.failed(run, error, policy)

    def failed(self, run: StepRun, error: Exception, policy: Policy) -> StepRun | None:
        """Stores what a failed attempt leads to, and gives the visit that this worker goes on with."""
        if isinstance(error, Skip):
            return self._settled_alone(run, error.result, skip=error)
        self.results.forget()
        of_step.of_step(run, error, self.plan, policy)
        return None

    def _settled_alone(
        self, run: StepRun, result: Any, skip: Skip | None = None
    ) -> StepRun | None:
        """Settles a visit in a transaction of its own; what goes wrong with that is stored."""
        try:
            with transaction.atomic(durable=True):
                return self._settle(run, result, skip=skip)
        except Exception as error:  # noqa: BLE001  # no way on may fit
            self.results.forget()
            policy = policy_of(run, self.plan.vertices.get(run.node))
            of_step.of_step(run, error, self.plan, policy)
        return None

    # Functions

    def _run_function(
        self, run: StepRun, vertex: Vertex, policy: Policy
    ) -> StepRun | None:
        if policy.transactional:
            with transaction.atomic(durable=True):
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
        quick = time.monotonic() - begun < HOLD_SECONDS and policy.idempotent
        quick = quick and vertex.undo is None  # what was done must be known to undo it
        if run.kind == StepKind.ITEM and quick and not run.error and not run.redo:
            held = HeldResult(run, result, result_columns(run, vertex.returns, result))
            return self._store_held() if self.quick.hold(held) else None
        return self.returned(run, result)

    def returned(self, run: StepRun, result: Any) -> StepRun | None:
        """Settles a visit whose function has returned, and gives the visit that this worker goes on with.

        Raises:
            Exception: no way on fits the result, or the database refused.
        """
        if self._is_alone(run):
            try:
                return self._settle(run, result, alone=True)
            except LeaseLost:
                pass  # the process was changed meanwhile: now with its lock, which tells
        with transaction.atomic(durable=True):
            return self._settle(run, result)

    def _is_alone(self, run: StepRun) -> bool:
        """Whether this visit is all that is open, as far as this session knows; the revision will tell."""
        instance = self.instance
        return bool(
            instance.open_steps == 1
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
        """
        work = leases.name_of(step_runs, run.pk)
        with self.worker_slice.watch(
            policy.timeout, work, policy.heartbeat
        ) as reporting:
            with reporting():  # the function has nothing to report before it is called
                context = RunningStep(self.instance, run, policy.timeout, reporting)
                function, arguments = self.bound(run, vertex, context)
            result = application_code.call(function, arguments, run.node)
        if isinstance(result, Outcome):
            raise result
        return result

    def bound(
        self,
        run: StepRun,
        vertex: Vertex,
        context: RunningStep,
        elsewhere: Elsewhere = sync_to_async,
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function of a visit, and its arguments.

        Args:
            run: the claimed visit.
            vertex: its step.
            context: of the attempt.
            elsewhere: how an asynchronous function's context reaches the thread that has the engine's connection.

        Raises:
            HandlerMissing: the running code has none.
            CorruptInput, InvalidMessage: as `Results.arguments`.
        """
        undo = run.kind == StepKind.UNDO
        step = vertex.undo if undo else vertex.step
        if step is None or step.function is None:
            raise HandlerMissing(f"nothing runs for {run.node} in the running code")
        bindings = vertex.undo_bindings if undo else vertex.bindings
        function = in_use(step.function)
        if is_asynchronous(function):
            awaited = AwaitedStep(context, elsewhere)
            arguments = self.results.arguments(bindings, run, awaited)
            return awaited.around(function), arguments
        return function, self.results.arguments(bindings, run, context)

    # Sub-processes

    def _run_subprocess(self, run: StepRun, vertex: Vertex) -> StepRun | None:
        """Starts the sub-process of a visit, or settles the visit when the sub-process has ended."""
        if run.child_id is None:
            self._start_subprocess(run, vertex)
            return None
        child = subprocesses.ended(run)
        if child is None or run.status == StepStatus.FAILED:
            with transaction.atomic(durable=True):
                what = ("wait", run.attempt, self.instance.revision)
                change = self._lock(run, *what)
                retrying.wait_on(change, run)
                change.write()
            return None
        body = subprocesses.result_of(child)
        with transaction.atomic(durable=True):
            result = subprocesses.read(run, vertex, body)
            return self._store(self._lock(run), run, result, sealed(body))

    def _start_subprocess(self, run: StepRun, vertex: Vertex) -> None:
        definition = subprocesses.definition_of(vertex)
        arguments = self.results.arguments(vertex.bindings, run, None)
        given, pk = subprocesses.input_of(definition, arguments), uuid7()
        pin = starting.pinned(definition, given)
        try:
            with transaction.atomic(durable=True):
                change = self._lock(run, "child", pk)
                if change.paused:  # meanwhile: nothing new starts
                    send([give_back.rested(run)])
                    return
                subprocesses.start(change, run, pin, pk)
                change.write()
        except IntegrityError:
            subprocesses.explain(definition, given)
            raise

    # A map's quick elements

    def goes_with(self, work: Work) -> bool:
        """Whether a piece of work is another element of the map whose results are held."""
        return self.quick.goes_with(work)

    def finish(self) -> None:
        """Stores what is held, and goes on with what follows."""
        while self.quick:  # what follows may be a map again
            following = self._store_held()
            if following is not None:
                self.go_through(following)

    def _store_held(self) -> StepRun | None:
        """Stores the results that are held, all in one commit; one by one where that cannot be."""
        held = self.quick.take()
        if not held:
            self.worker_slice.held.stored()
            return None
        try:
            with transaction.atomic(durable=True):
                return self._store_together(held)
        except Exception as error:  # noqa: BLE001  # each by itself tells whose it is
            log.info("%s elements could not be stored together: %s", len(held), error)
            if passes(error):
                give_back.doubt()  # they may have been, and what follows taken up
            following = [
                self._settled_alone(one.run, one.result) for one in still_mine(held)
            ]
            return next(filter(None, following), None)
        finally:
            self.worker_slice.held.stored()

    def _store_together(self, held: list[HeldResult]) -> StepRun | None:
        first = held[0].run
        change = self._lock(first)
        for one in held:
            change.close(one.run, StepStatus.DONE, **one.given)
        maps.count(change, first, {one.run.item or 0: one.result for one in held})
        change.write()
        return change.mine

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
        change = self._change(run, self.clock.now()) if alone else self._lock(run)
        change.alone = alone
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
        error = "" if skip is None else str(skip)
        change.close(run, status, **given, error=error)
        settling.follow(change, run, result, status)
        change.write()
        if run.kind in (StepKind.STEP, StepKind.RUN):
            self.results.learn(run.node, given["result"])
        return change.mine

    def _lock(self, run: StepRun, *what: object) -> WorkflowChange:
        """A change of the locked process, caused by this visit; `what` tells several changes of one visit apart.

        Raises:
            LeaseLost: the process is gone or has ended.
        """
        instance, now = instances.lock(run.instance_id)
        if instance is None or instance.finished_at is not None:
            raise LeaseLost("the process has ended")
        self.instance = self.results.instance = instance
        return self._change(run, now, *what)

    def _owner(self) -> str:
        """Who goes on with a step that starts: this worker, unless its time is over or the process stands still."""
        over = self.worker_slice.over() or self.instance.paused_at is not None
        return "" if over else self.worker_slice.owner

    def _change(self, run: StepRun, now: datetime, *what: object) -> WorkflowChange:
        """A change of the process, as this session knows it, caused by this visit."""
        return WorkflowChange(
            self.instance,
            Cause.of(CauseKind.STEP, run.pk, *what),
            now,
            self.plan,
            self.workflow.queue,
            self._owner(),
            self.worker_slice.queue,
        )


def _has_returned(run: StepRun) -> bool:
    """Whether an element's function has given its result before, and only that was stored."""
    given = run.kind == StepKind.ITEM and run.checksum and not run.error
    return bool(given) and intact(run)


def _put_to_rest(run: StepRun) -> None:
    """Gives a visit back whose process stands still; where it goes on meanwhile, it is due at once."""
    with transaction.atomic(durable=True):
        instance, now = instances.lock(run.instance_id)
        still = instance is not None and instance.paused_at is not None
        send([give_back.rested(run) if still else give_back.given_back(run, now)])
