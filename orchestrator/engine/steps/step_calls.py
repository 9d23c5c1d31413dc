"""Visits of steps whose functions wait outside: one worker calls many of them at once, each in its session.

As in a session: 1. Read the function's arguments. 2. Call it, watched. 3. In one commit: settle the visit under its
fence, start the steps that follow, and claim one of them that waits outside too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, NamedTuple
from uuid import UUID

from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.sql.connection import note_uncertain_commit, passes
from orchestrator.engine.steps import quick_results
from orchestrator.engine.steps.attempts import (
    check_branches,
    check_step_attempts,
    has_room,
    hold_back,
    policy_of,
)
from orchestrator.engine.steps.context import RunningStep
from orchestrator.engine.steps.known_process import HeldResult
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.application_code.calling import apply, await_function
from orchestrator.engine.storage.application_code.errors import from_application
from orchestrator.engine.storage.results import (
    has_returned,
    result_columns,
    returned_result,
)
from orchestrator.engine.work import releasing
from orchestrator.engine.work.call_room import Room
from orchestrator.engine.work.calls import Call
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.exceptions import Outcome
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.queue import base_queue, holds_calls


class StepCallKind(NamedTuple):
    """The kind of a visit's calls: the same for all visits of a step, in all processes."""

    definition: str
    node: str
    undo: bool


class StepCall(Call):
    """A visit whose function waits outside.

    Args:
        session: the session that settles it.
        run: the claimed visit.
        vertex: its step.
        policy: the policy by which it runs.
        room: the worker's room for calls.
    """

    def __init__(
        self, session: Session, run: StepRun, vertex: Vertex, policy: Policy, room: Room
    ) -> None:
        super().__init__(
            run,
            timeout=policy.timeout,
            heartbeat=policy.heartbeat,
            idempotent=policy.idempotent,
            threads=policy.threads,
            kind=call_kind(session, run),
        )
        self.session, self.run, self.policy, self.room = session, run, policy, room
        self.vertex = vertex
        context = RunningStep(session.instance, run, policy.timeout, self.reporting)
        self.function, self.arguments = session.bind(
            run, vertex, context, lambda function: partial(self.call_engine, function)
        )
        if iscoroutinefunction(self.function):
            self.threads = None
        self.most = _least(self.threads, policy.concurrency)

    def call(self) -> Any:
        return apply(self.function, self.arguments, self.run.node)

    async def wait(self) -> Any:
        awaited = await_function
        return await awaited(self.function, self.arguments, self.run.node)

    def store_result(self, result: Any) -> Call | None:
        if isinstance(result, Outcome):
            return self.store_error(result)
        with self.session.worker_slice.watched(self.run):
            try:
                following = self.session.settle_result(self.run, result)
            except BaseException as error:
                # The result is kept, and stored later.
                if passes(error) and not from_application(error):
                    note_uncertain_commit()
                    raise
                following = self.session.settle_failure(self.run, error, waits=False)
        return prepare_call(self.session, following, self.room)

    @property
    def together(self) -> Hashable | None:
        """The same for all results that may be held: they may share a commit, also of several processes."""
        may = self.session.may_be_held(self.run, self.vertex, self.policy)
        return StepCall if may else None

    def store_results(self, given: Sequence[tuple[Call, Any]]) -> list[Call]:
        held, following = list[HeldResult](), list[Call | None]()
        sessions = dict[UUID, Session]()
        with self.session.worker_slice.watched(self.run):
            for call, result in given:
                if isinstance(call, StepCall) and (one := call.held(result)):
                    held.append(one)
                    sessions.setdefault(one.run.instance_id, call.session)
                else:
                    following.append(call.store_result(result))
            stored = quick_results.store_results(
                held, min(quick_results.ROOM, self.room.places())
            )
        following += [
            prepare_call(sessions[run.instance_id], run, self.room) for run in stored
        ]
        return [call for call in following if call is not None]

    def held(self, result: Any) -> HeldResult | None:
        """Return its result, to be stored together with others; None for an outcome or a bad result."""
        if isinstance(result, Outcome):
            return None
        try:
            given = result_columns(self.run, self.vertex.returns, result)
        except BaseException:  # noqa: BLE001  # storing it singly stores the error
            return None
        return HeldResult(self.session, self.run, result, given, kept=True)

    def store_error(self, error: Exception) -> Call | None:
        with self.session.worker_slice.watched(self.run):
            following = self.session.settle_failure(self.run, error, waits=False)
        return prepare_call(self.session, following, self.room)


def call_kind(session: Session, run: StepRun) -> StepCallKind:
    """Return the kind of a visit's calls."""
    return StepCallKind(session.instance.name, run.node, run.kind == StepKind.UNDO)


def prepare_step_call(
    run: StepRun, worker_slice: WorkerSlice, room: Room, before: Call | None
) -> Call | None:
    """Prepare the call of a claimed visit. Return None where it is not called now, and store that.

    Args:
        run: the visit.
        worker_slice: the worker's slice.
        room: the worker's room for calls.
        before: the call that was prepared just before, of the same claim: the elements of one map share a session.
    """
    with worker_slice.watched(run):
        session = None
        if isinstance(before, StepCall) and run.kind == StepKind.ITEM:
            same = before.run.instance_id == run.instance_id
            session = before.session if same and before.session.goes_on else None
        if session is None:
            quick = quick_results.QuickResults(worker_slice.held)
            session = Session.of(run, worker_slice, quick)
        if session is None:
            return None
        if run.kind != StepKind.ITEM:  # live pages are told that it runs
            announce(session.instance, {run.node: StepStatus.RUNNING}, "")
        return prepare_call(session, run, room)


def prepare_call(session: Session, run: StepRun | None, room: Room) -> Call | None:
    """Prepare the call of a visit of this session. Return None where it is not called now, and store that."""
    while run is not None:
        vertex = session.plan.vertices.get(run.node)
        policy = policy_of(run, vertex)
        try:
            if vertex is None:
                raise session.missing_step(run)
            step = vertex.undo if run.kind == StepKind.UNDO else vertex.step
            if holds_calls(run.queue) and (step is None or not step.is_call):
                releasing.move_to_queue(run, base_queue(run.queue))
                return None
            check_step_attempts(run, policy)
            check_branches(run, vertex)
            if hold_back(session.instance, run, vertex):
                return None
            if has_returned(run):
                result = returned_result(run, vertex)
                following = session.settle_result(run, result)
                return prepare_call(session, following, room)
            if not _has_room(session, run, policy, room):
                releasing.release_at_once(run)
                return None
            call = StepCall(session, run, vertex, policy, room)
            room.note_prepared(call)
            return call
        except BaseException as error:  # noqa: BLE001  # as when a session runs it
            run = session.settle_failure(run, error, waits=False)
    return None


def _has_room(session: Session, run: StepRun, policy: Policy, room: Room) -> bool:
    """Whether the limits on the calls in flight of its kind let the call begin now."""
    most = _least(policy.threads, policy.concurrency)
    if most is None:
        return True
    kind = call_kind(session, run)
    mine = room.taken(kind)
    if mine < most and has_room(run, session.instance.name, policy, mine):
        return True
    room.note_full(kind)
    return False


def _least(*limits: int | None) -> int | None:
    """The least of the given limits; None where all are None."""
    return min((limit for limit in limits if limit is not None), default=None)
