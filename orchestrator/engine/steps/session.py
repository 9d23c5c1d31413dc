"""Running claimed visits of steps: a session runs the visits of one process, one after another.

1. Read the function's arguments. 2. Call it, watched. 3. In one commit: lock the process, settle the visit under its
fence, start the steps that follow, and claim one of them. 4. Go on with that one. The result of a quick function is
held instead of 3., and stored together with others (`quick_results`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from orchestrator.definition.declarations.handlers import function_in_use
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.sql.batch import Clock, send
from orchestrator.engine.sql.connection import note_uncertain_commit
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.steps import subprocesses
from orchestrator.engine.steps.attempts import (
    check_branches,
    check_start,
    check_step_attempts,
    has_room,
    hold_back,
    other_queue,
    policy_of,
)
from orchestrator.engine.steps.context import (
    AwaitedStep,
    InEngineThread,
    RunningStep,
    as_awaitable,
    as_plain,
)
from orchestrator.engine.steps.known_process import HeldResult, KnownProcess
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.calling import (
    BlockingTransaction,
    apply,
)
from orchestrator.engine.storage.application_code.errors import EngineErrors
from orchestrator.engine.storage.results import (
    CALLED,
    drop_result,
    has_returned,
    result_columns,
    returned_result,
)
from orchestrator.engine.work import leases, releasing, step_failures
from orchestrator.engine.work.keeping import store_outcome
from orchestrator.engine.work.worker_slice import (
    HOLD_SECONDS,
    Holding,
    WorkerSlice,
    lateness,
)
from orchestrator.exceptions import HandlerMissing, LeaseLost, Outcome, Skip
from orchestrator.models import ProcessInstance, StepKind, StepRun


class Session(KnownProcess):
    """The visits of one process that one worker runs one after another.

    Args:
        quick: holds the results of quick functions.
    """

    def __init__(
        self,
        instance: ProcessInstance,
        plan: Plan,
        worker_slice: WorkerSlice,
        clock: Clock,
        quick: Holding[HeldResult],
    ) -> None:
        super().__init__(instance, plan, worker_slice, clock)
        self.quick = quick
        self.held_at = time.monotonic()
        """A monotonic time at which this worker held the running visit for sure."""

    @classmethod
    def of(
        cls, run: StepRun, worker_slice: WorkerSlice, quick: Holding[HeldResult]
    ) -> Session | None:
        """Return the session of a claimed visit; None if its process has ended, or cannot run here, which is stored."""
        instance, now = instances.read(run.instance_id)
        clock = Clock(now)  # before the plan is made, which may take its time
        if instance is None or instance.finished_at is not None:
            return None
        if instance.paused_at is not None:
            _put_to_rest(run)
            return None
        try:
            plan = _plan_of(run, instance, worker_slice)
            return cls(instance, plan, worker_slice, clock, quick)
        except BaseException as error:  # noqa: BLE001  # the running code may have no such definition
            step_failures.fail_run(run, error, None, Policy())
            return None

    def go_through(self, run: StepRun, held_at: float) -> None:
        """Run a visit, and those that follow it here.

        Args:
            run: the visit.
            held_at: a monotonic time at which this worker held it.
        """
        following: StepRun | None = run
        while following is not None:
            self.held_at = held_at
            following = self.run(following)
            held_at = time.monotonic()

    def run(self, run: StepRun) -> StepRun | None:
        """Run one visit to its end. Return the one that this worker goes on with."""
        vertex = self.plan.vertices.get(run.node)
        policy = policy_of(run, vertex)
        # Watched until the outcome is stored: the supervisor notices a predicate that hangs and a death in between.
        with self.worker_slice.watched(run, policy.timeout):
            try:
                return self._run(run, vertex, policy)
            except BaseException as error:  # noqa: BLE001  # a step may raise anything
                return self.settle_failure(run, error)

    def _run(
        self, run: StepRun, vertex: Vertex | None, policy: Policy
    ) -> StepRun | None:
        if vertex is None:
            raise self.missing_step(run)
        if queue := other_queue(run, vertex):
            releasing.move_to_queue(run, queue)
            return None
        check_step_attempts(run, policy)
        check_branches(run, vertex)
        if hold_back(self.instance, run, vertex):
            return None
        if not has_room(run, self.instance.name, policy):
            releasing.release_for_room(run)
            return None
        if vertex.step.definition is not None and run.kind != StepKind.UNDO:
            run.called = time.monotonic()
            return subprocesses.run_child(self, run, vertex)
        return self._run_function(run, vertex, policy)

    # Functions

    def _run_function(
        self, run: StepRun, vertex: Vertex, policy: Policy
    ) -> StepRun | None:
        returned = has_returned(run)
        if policy.transactional and not returned:
            return self._run_in_transaction(run, vertex, policy)
        if self.quick:
            self.worker_slice.held.show_calling()
        begun = time.monotonic()
        result = (
            returned_result(run, vertex)
            if returned
            else self._call(run, vertex, policy)
        )
        quick = time.monotonic() - begun < HOLD_SECONDS * lateness.factor
        if quick and self.may_be_held(run, vertex, policy):
            given = result_columns(run, vertex.returns, result)
            self.quick.hold(run.pk, HeldResult(self, run, result, given))
            return None
        store = partial(self.settle_result, run, result)
        return store_outcome(run, self.worker_slice, store)

    def _run_in_transaction(
        self, run: StepRun, vertex: Vertex, policy: Policy
    ) -> StepRun | None:
        """Call a transactional function, and store its result in its own transaction, also if nothing follows yet."""
        drop_result(run)
        try:
            with self.committing():
                instances.lock(run.instance_id)
                with BlockingTransaction(run.node):
                    result = self._returned(run, vertex, policy)
                    if isinstance(result, Outcome) and not isinstance(result, Skip):
                        raise result
                skip = result if isinstance(result, Skip) else None
                result = result if skip is None else skip.result
                try:
                    return self.settle(run, result, skip=skip)
                except BaseException as error:
                    if not self.store_undecided(run, error):
                        raise
            self.forget()
            return None
        except BaseException:
            drop_result(run)  # it was rolled back with the effect
            raise

    def may_be_held(self, run: StepRun, vertex: Vertex, policy: Policy) -> bool:
        """Whether a result may wait for others: the engine alone decides what follows, and soon.

        A result is stored at once if its step can be undone, or must not run twice. The last element of a map is stored
        singly if the application decides what follows (`group`). An element whose result another worker had to store
        may be that one, and have delayed its own worker.
        """
        if not policy.idempotent or vertex.undo is not None:
            return False
        if run.error or run.redo or run.blocked:
            return False
        if run.kind == StepKind.ITEM:
            return not (vertex.decides and run.checksum)
        return run.kind in CALLED and self.follows_plainly(vertex)

    def follows_plainly(self, vertex: Vertex) -> bool:
        """Whether the engine alone decides what follows a step."""
        spreads = any(self.plan[link.target].each for link in vertex.links)
        return not vertex.decides and not spreads

    def _call(self, run: StepRun, vertex: Vertex, policy: Policy) -> Any:
        """Call the step's function.

        Raises:
            Exception: the function's error, or the outcome that it returns.
            LeaseLost: as `_returned`.
        """
        result = self._returned(run, vertex, policy)
        if isinstance(result, Outcome):
            raise result
        return result

    def _returned(self, run: StepRun, vertex: Vertex, policy: Policy) -> Any:
        """Call the step's function. Return its result, or the outcome that it returns.

        Raises:
            Exception: the function's error.
            LeaseLost: its arguments took so long to read that another worker may have run it.
        """
        work = leases.work_name(run)
        with self.worker_slice.watch(
            policy.timeout, work, policy.heartbeat
        ) as reporting:
            # Until the call the function cannot report, and errors are the engine's.
            with reporting(), EngineErrors():
                context = RunningStep(self.instance, run, policy.timeout, reporting)
                function, arguments = self.bind(run, vertex, context)
                self._check_held(run)
            return apply(function, arguments, run.node)

    def _check_held(self, run: StepRun) -> None:
        """Raise LeaseLost if another worker may have taken the visit over while it was prepared."""
        if leases.lease_may_end(self.held_at):
            note_uncertain_commit()
            raise LeaseLost(f"what {run.node} is called with was long in coming")

    def bind(
        self,
        run: StepRun,
        vertex: Vertex,
        context: RunningStep,
        elsewhere: InEngineThread | None = None,
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return the function of a visit, and its arguments.

        Args:
            run: the claimed visit.
            vertex: its step.
            context: the attempt's context.
            elsewhere: calls a function in the engine's thread for an asynchronous function's context; None to await
                that function here, alone.

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
        function = function_in_use(own := step.function)
        replaced = function is not own  # else one question is enough
        if iscoroutinefunction(own) or (replaced and iscoroutinefunction(function)):
            awaited = AwaitedStep(context, elsewhere or sync_to_async)
            arguments = self.results.arguments(bindings, run, awaited)
            wait = as_plain if elsewhere is None else as_awaitable
            function = wait(function, awaited)
        else:
            arguments = self.results.arguments(bindings, run, context)
        run.called = time.monotonic()
        return function, arguments


def _plan_of(
    run: StepRun, instance: ProcessInstance, worker_slice: WorkerSlice
) -> Plan:
    """The plan of a visit's process, watched where the application makes the graph, which may hang or end the worker.

    Raises:
        Exception: as `definitions.plan_of`.
        WorkerDied: making the graph has ended too many workers.
    """
    if definitions.has_plan(instance):
        return definitions.plan_of(instance)
    check_start(run)
    with worker_slice.watched(run):
        return definitions.plan_of(instance)


def _put_to_rest(run: StepRun) -> None:
    """Release a visit of a paused process; if the process was resumed meanwhile, the visit is due at once."""
    with transaction.atomic(durable=True):
        instance, now = instances.lock(run.instance_id)
        still = instance is not None and instance.paused_at is not None
        send([releasing.suspend(run) if still else releasing.release(run, now)])
