"""The visits of one process that one worker runs one after another.

1. read what the function needs; 2. call it, watched; 3. in one commit: lock the process, settle the visit under its
fence, carry out what follows, and take one of the steps that start; 4. go on with that one. Whatever goes wrong is
stored with the visit (`step_failure`).
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from orchestrator.conf import conf
from orchestrator.definition.codec import encode_as, seal
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import (
    application_code,
    incidents,
    maps,
    redoing,
    undoing,
)
from orchestrator.engine.change.joins import check_branches
from orchestrator.engine.change.workflow import Flow
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.failures import of_step
from orchestrator.engine.steps import quick_results, subprocesses
from orchestrator.engine.steps.attempts import check_attempts, has_room, policy_of
from orchestrator.engine.steps.context import RunningStep
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import Results
from orchestrator.engine.storage.tables import instances, step_runs
from orchestrator.exceptions import (
    HandlerMissing,
    InvalidMessage,
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

log = logging.getLogger(__name__)


class Clock:
    """The database's time, told once and carried on by this process's own clock."""

    def __init__(self, now: datetime | None = None) -> None:
        self._told, self._at = now or datetime.now(UTC), time.monotonic()

    def now(self) -> datetime:
        return self._told + timedelta(seconds=time.monotonic() - self._at)


class Session:
    """The visits of one process that one worker runs one after another."""

    def __init__(
        self, instance: ProcessInstance, plan: Plan, worker_slice: WorkerSlice
    ) -> None:
        self.instance = instance
        self.plan = plan
        self.worker_slice = worker_slice
        self.results = Results(instance, plan)
        self.workflow = definitions.workflow_of(instance)
        self.clock = Clock()

    @classmethod
    def of(cls, run: StepRun, worker_slice: WorkerSlice) -> Session | None:
        """The session of a claimed visit; None when its process has ended, or cannot be run here, which is stored."""
        instance, now = instances.read(run.instance_id)
        clock = Clock(now)  # before the plan is made, which may take its time
        if instance is None or instance.finished_at is not None:
            return None
        try:
            session = cls(instance, definitions.plan_of(instance), worker_slice)
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
            check_attempts(run, policy)
            check_branches(run, vertex)
            if not has_room(run, self.instance.name, policy):
                of_step.put_off(run)
                return None
            # Until the result is stored, so that neither a predicate that hangs nor a death in between goes unnoticed.
            most = policy.timeout + conf().EVENT_TIMEOUT
            with self.worker_slice.watch(most, leases.name_of(step_runs, run.pk)):
                return self._run(run, vertex, policy)
        except LeaseLost as lost:
            log.info("step run %s was settled by another worker: %s", run.pk, lost)
        except Exception as error:  # noqa: BLE001  # a step may raise anything
            return self._failed(run, error, policy)
        return None

    def _failed(self, run: StepRun, error: Exception, policy: Policy) -> StepRun | None:
        if isinstance(error, Skip):
            return self._skipped(run, error, policy)
        self.results.forget()
        of_step.of_step(run, error, self.plan, policy)
        return None

    def _skipped(self, run: StepRun, skip: Skip, policy: Policy) -> StepRun | None:
        try:
            with transaction.atomic(durable=True):
                return self._settle(
                    run, skip.result, StepStatus.SKIPPED, error=str(skip)
                )
        except LeaseLost as lost:
            log.info("step run %s was settled by another worker: %s", run.pk, lost)
        except Exception as error:  # noqa: BLE001  # no way on may fit
            of_step.of_step(run, error, self.plan, policy)
        return None

    def _run(self, run: StepRun, vertex: Vertex, policy: Policy) -> StepRun | None:
        if vertex.step.definition is not None and run.kind != StepKind.UNDO:
            return subprocesses.run(self, run, vertex)
        if policy.transactional:
            with transaction.atomic(durable=True):
                instances.lock(run.instance_id)
                return self._settle(run, self._call(run, vertex, policy))
        begun = time.monotonic()
        result = self._call(run, vertex, policy)
        quick = (
            time.monotonic() - begun < quick_results.HOLD_SECONDS and policy.idempotent
        )
        quick = quick and vertex.undo is None  # what was done must be known to undo it
        if run.kind == StepKind.ITEM and quick and not run.error and not run.redo:
            given = _given(run, vertex.returns, result)
            return self.worker_slice.quick_results.gather(self, run, result, given)
        if self._is_alone(run):
            try:
                return self._settle(run, result, alone=True)
            except LeaseLost:
                pass  # the process was changed meanwhile: now with its lock, which tells
        with transaction.atomic(durable=True):
            return self._settle(run, result)

    def finish(self, run: StepRun, result: Any) -> StepRun | None:
        """Settles a visit by itself that could not be settled with others."""
        try:
            with transaction.atomic(durable=True):
                return self._settle(run, result)
        except LeaseLost as lost:
            log.info("step run %s was settled by another worker: %s", run.pk, lost)
        except Exception as error:  # noqa: BLE001  # no way on may fit
            vertex = self.plan.vertices.get(run.node)
            self._failed(run, error, policy_of(run, vertex))
        return None

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
        undo = run.kind == StepKind.UNDO
        step = vertex.undo if undo else vertex.step
        function = step.function if step is not None else None
        bindings = vertex.undo_bindings if undo else vertex.bindings
        if function is None:
            raise HandlerMissing(f"nothing runs for {run.node} in the running code")
        work = leases.name_of(step_runs, run.pk)
        with self.worker_slice.watch(policy.timeout, work, policy.heartbeat) as alive:
            context = RunningStep(self.instance, run, policy.timeout, alive)
            arguments = self.results.arguments(bindings, run, context)
            result = application_code.call(function, arguments, run.node)
        if isinstance(result, Outcome):
            raise result
        return result

    def _settle(
        self,
        run: StepRun,
        result: Any,
        status: StepStatus = StepStatus.DONE,
        error: str = "",
        alone: bool = False,
    ) -> StepRun | None:
        """Stores a result and what follows from it, in the running transaction; alone in one of its own."""
        vertex = self.plan[run.node]
        annotation = (
            Any
            if run.kind == StepKind.UNDO or status == StepStatus.SKIPPED
            else vertex.returns
        )
        given = _given(run, annotation, result)
        flow = self.flow(run, self.clock.now()) if alone else self.lock(run)
        flow.alone = alone
        flow.close(run, status, **given, error=error)
        if run.error:
            flow.mark(incidents.resolved("done", flow.now, step_run_id=run.pk))
        if run.kind == StepKind.UNDO:
            undoing.go_on(flow, run)
        elif not alone and undoing.is_undone_later(flow, run):
            undoing.came_to_its_end(flow, run, status)
        elif run.redo:
            redoing.finished(flow, run)
        elif run.kind == StepKind.ITEM:
            maps.count(flow, run, failed=False)
        else:
            flow.go_on(Settled(run.node, run.visit, "done", result))
        return self.commit(flow, run, given["result"])

    def lock(self, run: StepRun, *what: object) -> Flow:
        """A change of the locked process, caused by this visit; `what` tells several changes of one visit apart.

        Raises:
            LeaseLost: the process is gone or has ended.
        """
        instance, now = instances.lock(run.instance_id)
        if instance is None or instance.finished_at is not None:
            raise LeaseLost("the process has ended")
        self.instance = self.results.instance = instance
        return self.flow(run, now, *what)

    def flow(self, run: StepRun, now: datetime, *what: object) -> Flow:
        """A change of the process, as this session knows it, caused by this visit."""
        owner = "" if self.worker_slice.over() else self.worker_slice.owner
        return Flow(
            self.instance,
            Cause.of(CauseKind.STEP, run.pk, *what),
            now,
            self.plan,
            self.workflow.queue,
            owner,
            self.worker_slice.queue,
        )

    def commit(self, flow: Flow, run: StepRun, body: Any) -> StepRun | None:
        """Writes the change, and gives the visit that this worker goes on with."""
        flow.write()
        if run.kind in (StepKind.STEP, StepKind.RUN):
            self.results.learn(run.node, body)
        return flow.mine


def _given(run: StepRun, annotation: Any, result: Any) -> dict[str, Any]:
    """The columns in which a result is stored.

    Raises:
        InvalidMessage: it is not of the declared type, or cannot be stored.
    """
    try:
        body = encode_as(annotation, result)
        return {"result": body, "checksum": seal(body)}
    except InvalidMessage as bad:
        raise InvalidMessage(f"the result of {run.node}: {bad}") from None
