"""The visits of one process that one worker runs one after another.

1. read what the function needs; 2. call it, watched; 3. in one commit: lock the process, settle the visit under its
fence, carry out what follows, and take one of the steps that start; 4. go on with that one. The result of a quick
function is held instead of 3., and stored together with others' (`group`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from orchestrator.definition.codec import decode
from orchestrator.definition.invalid import is_asynchronous
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import (
    application_code,
)
from orchestrator.engine.change.workflow import plan_of
from orchestrator.engine.claims import give_back, leases
from orchestrator.engine.claims.held import HOLD_SECONDS, Holding
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.failures import of_step
from orchestrator.engine.steps import subprocesses
from orchestrator.engine.steps.attempts import (
    check_attempts,
    check_branches,
    check_start,
    has_room,
    other_queue,
    policy_of,
)
from orchestrator.engine.steps.context import (
    AwaitedStep,
    Elsewhere,
    RunningStep,
    awaiting,
    waited_for,
)
from orchestrator.engine.steps.known_process import HeldResult, KnownProcess
from orchestrator.engine.storage import definitions, uncertain
from orchestrator.engine.storage.batch import Clock, send
from orchestrator.engine.storage.results import (
    intact,
    result_columns,
)
from orchestrator.engine.storage.tables import instances
from orchestrator.exceptions import (
    HandlerMissing,
    LeaseLost,
    Outcome,
)
from orchestrator.models import (
    ProcessInstance,
    StepKind,
    StepRun,
)
from orchestrator.registry import function_in_use

HELD = (StepKind.STEP, StepKind.ITEM)
"""The visits whose results may be held, and so be stored by others."""


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
        """When the visit that is run was this worker's for sure."""

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
            plan = _plan_of(run, instance, worker_slice)
            return cls(instance, plan, worker_slice, clock, quick)
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
        with self.worker_slice.watched(run, policy.timeout):
            try:
                return self._run(run, vertex, policy)
            except Exception as error:  # noqa: BLE001  # a step may raise anything
                return self.failed(run, error)

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
            return subprocesses.run(self, run, vertex)
        return self._run_function(run, vertex, policy)

    # Functions

    def _run_function(
        self, run: StepRun, vertex: Vertex, policy: Policy
    ) -> StepRun | None:
        if policy.transactional:
            with self.committing():
                instances.lock(run.instance_id)
                with application_code.blocking_transaction(run.node):
                    result = self._call(run, vertex, policy)
                return self.settle(run, result)
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

    def _call(self, run: StepRun, vertex: Vertex, policy: Policy) -> Any:
        """Calls the step's function.

        Raises:
            Exception: whatever it raises, or the outcome that it returns.
            LeaseLost: what it is called with was so long in coming that others may have run it.
        """
        work = leases.name_of(run)
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
        function = function_in_use(step.function)
        if is_asynchronous(step.function) or is_asynchronous(function):
            awaited = AwaitedStep(context, elsewhere or sync_to_async)
            arguments = self.results.arguments(bindings, run, awaited)
            wait = waited_for if elsewhere is None else awaiting
            return wait(function, awaited), arguments
        return function, self.results.arguments(bindings, run, context)


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
    with worker_slice.watched(run):
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
