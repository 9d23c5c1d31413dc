"""Visits of steps that wait outside: each is prepared, called beside many others, and settled in its session.

As in a session, in this order: 1. read what the function needs; 2. it is called, watched; 3. in one commit: the visit
is settled under its fence, what follows is carried out, and of the steps that start one that waits outside is taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from orchestrator.definition.invalid import is_asynchronous
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import application_code
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.claims import give_back
from orchestrator.engine.claims.calls import Call
from orchestrator.engine.claims.room import Room
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.steps import group
from orchestrator.engine.steps.attempts import (
    check_attempts,
    check_branches,
    has_room,
    policy_of,
)
from orchestrator.engine.steps.context import RunningStep
from orchestrator.engine.steps.known_process import HeldResult
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage import uncertain
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.engine.storage.results import result_columns
from orchestrator.exceptions import HandlerMissing, Outcome
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.queue import base_queue, holds_calls


class StepCallKind(NamedTuple):
    """What a visit has in common with the others of its step, of all processes."""

    definition: str
    node: str
    undo: bool


class StepCall(Call):
    """A visit whose function waits outside.

    Args:
        session: in which it is settled.
        run: the claimed visit.
        vertex: its step.
        policy: how it is run.
        room: for more calls of each kind.
    """

    def __init__(
        self,
        session: Session,
        run: StepRun,
        vertex: Vertex,
        policy: Policy,
        room: Room,
    ) -> None:
        super().__init__(
            run,
            timeout=policy.timeout,
            heartbeat=policy.heartbeat,
            idempotent=policy.idempotent,
            threads=policy.threads,
            kind=kind_of(session, run),
        )
        self.session, self.run, self.policy, self.room = session, run, policy, room
        self.vertex = vertex
        context = RunningStep(session.instance, run, policy.timeout, self.reporting)
        self.function, self.arguments = session.bound(
            run, vertex, context, lambda function: partial(self.elsewhere, function)
        )
        if is_asynchronous(self.function):
            self.threads = None
        elif self.threads is None:
            self.threads = 1  # a plain function stands in for an asynchronous one
        self.most = _least(self.threads, policy.concurrency)

    def call(self) -> Any:
        return application_code.call(self.function, self.arguments, self.run.node)

    async def wait(self) -> Any:
        awaited = application_code.awaited
        return await awaited(self.function, self.arguments, self.run.node)

    def returned(self, result: Any) -> Call | None:
        if isinstance(result, Outcome):
            return self.failed(result)
        with self.session.worker_slice.watched(self.run):
            try:
                following = self.session.returned(self.run, result)
            except Exception as error:
                if passes(error):  # what it has given is not given up for that
                    uncertain.note()
                    raise
                following = self.session.failed(self.run, error)
        return call_of(self.session, following, self.room)

    @property
    def together(self) -> Hashable | None:
        """Results that may be held may also share a commit with those of other processes."""
        may = self.session.may_be_held(self.run, self.vertex, self.policy)
        return StepCall if may else None

    def all_returned(self, given: Sequence[tuple[Call, Any]]) -> list[Call]:
        held, following = list[HeldResult](), list[Call | None]()
        sessions = dict[UUID, Session]()
        with self.session.worker_slice.watched(self.run):
            for call, result in given:
                if isinstance(call, StepCall) and (one := call.held(result)):
                    held.append(one)
                    sessions.setdefault(one.run.instance_id, call.session)
                else:
                    following.append(call.returned(result))
            stored = group.store(held, min(group.ROOM, self.room.places()))
        following += [
            call_of(sessions[run.instance_id], run, self.room) for run in stored
        ]
        return [call for call in following if call is not None]

    def held(self, result: Any) -> HeldResult | None:
        """What it has given, as it is stored together with others; None where it is no result."""
        if isinstance(result, Outcome):
            return None
        try:
            given = result_columns(self.run, self.vertex.returns, result)
        except Exception:  # noqa: BLE001  # by itself it is stored with what is wrong
            return None
        return HeldResult(self.session, self.run, result, given, kept=True)

    def failed(self, error: Exception) -> Call | None:
        with self.session.worker_slice.watched(self.run):
            following = self.session.failed(self.run, error)
        return call_of(self.session, following, self.room)


def kind_of(session: Session, run: StepRun) -> StepCallKind:
    """The kind of a visit's calls."""
    return StepCallKind(session.instance.name, run.node, run.kind == StepKind.UNDO)


def begin(
    run: StepRun, worker_slice: WorkerSlice, room: Room, before: Call | None
) -> Call | None:
    """Prepares the call of a claimed visit; None when there is none now, which is stored.

    Args:
        run: the visit.
        worker_slice: of the worker.
        room: for more calls of each kind.
        before: what was prepared of the same claim just before: the elements of one map share what is read for them.
    """
    with worker_slice.watched(run):
        session = None
        if isinstance(before, StepCall) and run.kind == StepKind.ITEM:
            same = before.run.instance_id == run.instance_id
            session = before.session if same and before.session.goes_on else None
        if session is None:
            quick = group.QuickResults(worker_slice.held)
            session = Session.of(run, worker_slice, quick)
        if session is None:
            return None
        if run.kind != StepKind.ITEM:  # live pages are told that it runs
            announce(session.instance, {run.node: StepStatus.RUNNING}, "")
        return call_of(session, run, room)


def call_of(session: Session, run: StepRun | None, room: Room) -> Call | None:
    """Prepares the call of a visit of this session; None when there is none now, which is stored."""
    while run is not None:
        vertex = session.plan.vertices.get(run.node)
        policy = policy_of(run, vertex)
        try:
            if vertex is None:
                name = session.instance.name
                raise HandlerMissing(
                    "%(name)s has no step %(step)s now", name, run.node
                )
            step = vertex.undo if run.kind == StepKind.UNDO else vertex.step
            if holds_calls(run.queue) and (step is None or not step.is_call):
                give_back.to_queue(run, base_queue(run.queue))
                return None
            check_attempts(run, policy)
            check_branches(run, vertex)
            if not _has_room(session, run, policy, room):
                give_back.at_once(run)
                return None
            call = StepCall(session, run, vertex, policy, room)
            room.note_prepared(call)
            return call
        except Exception as error:  # noqa: BLE001  # as when a session runs it
            run = session.failed(run, error)
    return None


def _has_room(session: Session, run: StepRun, policy: Policy, room: Room) -> bool:
    """Whether the call may be made now, if only so many of its kind may be in flight."""
    most = _least(policy.threads, policy.concurrency)
    if most is None:
        return True
    kind = kind_of(session, run)
    mine = room.taken(kind)
    if mine < most and has_room(run, session.instance.name, policy, mine):
        return True
    room.note_full(kind)
    return False


def _least(*limits: int | None) -> int | None:
    """The least of the limits that there are."""
    return min((limit for limit in limits if limit is not None), default=None)
