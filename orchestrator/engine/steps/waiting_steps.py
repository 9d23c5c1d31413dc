"""Settling steps that wait for something outside: an event, an operator's decision, or their deadline."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any

from django.db import transaction
from django.db.models import Q

from orchestrator.configuration.notice_settings import Topic
from orchestrator.containers import group_by_key
from orchestrator.definition import Event
from orchestrator.definition.codec import copied, decode, digest, encode
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.declarations.transition_rows import (
    EventDecision,
    park,
    reject,
)
from orchestrator.definition.topology import closure
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Policy, Step
from orchestrator.engine.change import incidents
from orchestrator.engine.change.workflows import settling
from orchestrator.engine.change.workflows.following import follow_settled
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.batch import send
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.steps.attempts import check_step_attempts
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.engine.storage.results import Results
from orchestrator.engine.storage.stored_values import read_event
from orchestrator.engine.work import step_failures
from orchestrator.engine.work.releasing import suspend
from orchestrator.exceptions import CorruptInput, InvalidMessage, WorkerDied
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.text import Text

log = logging.getLogger(__name__)

DONE_OUTSIDE = (StepKind.WAIT, StepKind.ASK)
"""The kinds of visits that somebody outside settles, and that may have a deadline."""


class EventWaits:
    """The steps of a process that wait for events, and the stored values of their guards, each read once."""

    def __init__(self, instance: ProcessInstance, plan: Plan) -> None:
        self.plan = plan
        self.instance = instance
        self.results = Results(instance, plan)

    @cached_property
    def runs(self) -> list[StepRun]:
        """The waiting visits, the oldest first."""
        waits = {"kind": StepKind.WAIT, "status": StepStatus.WAITING}
        return list(self.instance.step_runs.filter(**waits).order_by("pk"))

    def find_taker(self, event: Event) -> StepRun | None:
        """Return the oldest visit that takes an event: the class and all guards fit."""
        concerned = [
            run for run in self.runs if _concerns(self.plan[run.node].step, event)
        ]
        self._read(self.plan[run.node] for run in concerned)
        return next((run for run in concerned if self._takes(run, event)), None)

    def outcome(self, event: Event) -> EventDecision:
        """Return the decision about an event that no visit takes now: "parked", "ignored" or "rejected".

        The open waits for such events say it by `otherwise`: it is kept if one of them parks it, else rejected if one
        of them rejects it. If one says nothing, the flow may have a row `ignore(Event)`.
        """
        steps = [self.plan[run.node].step for run in self.runs]
        said = {step.otherwise for step in steps if step.event is type(event)}
        if said and not said & {None, park}:
            return "rejected" if reject in said else "ignored"
        ignored = park not in said and type(event) in self.plan.ignored
        return "ignored" if ignored and type(event) not in self._later else "parked"

    @cached_property
    def _later(self) -> set[type[Event] | None]:
        """The events of steps that may begin to wait later: behind an open visit, or again."""
        begun = self.instance.step_runs.filter(~Q(blocked="") | Q(finished_at=None))
        links = group_by_key((link.source, link.target) for link in self.plan.links)
        first = set[str]()
        for node, finished_at in begun.values_list("node", "finished_at"):
            first |= {*links.get(node, ()), *([node] if finished_at else ())}
        later = closure(first, links) & self.plan.vertices.keys()
        return {self.plan[node].step.event for node in later}

    def fits_any(self, event: Event) -> bool:
        """Return whether a step waits for such an event and its guards hold, though its wait be over or still to come.

        A guard that compares with stored values holds before the first visit of its step.
        """
        steps = [v for v in self.plan.vertices.values() if _concerns(v.step, event)]
        visits = self.instance.step_runs.filter(kind=StepKind.WAIT).order_by("pk")
        named = visits.filter(node__in=[vertex.name for vertex in steps])
        latest = {run.node: run for run in named}
        self._read(steps)
        return any(
            self._takes(latest[one.name], event)
            if one.name in latest
            else _all_hold(one, event)
            for one in steps
        )

    def _read(self, steps: Iterable[Vertex]) -> None:
        """Read the results that the guards of steps compare with, in one query."""
        guards = (one for vertex in steps for one in vertex.guard_bindings)
        with suppress(CorruptInput):  # `_takes` raises it for the step itself
            self.results.results(one.name for one in guards if one.source == "result")

    def _takes(self, run: StepRun, event: Event) -> bool:
        """Whether a step's predicates hold, and its guards that compare with stored values."""
        vertex = self.plan[run.node]
        wanted = self.results.arguments(vertex.guard_bindings, run, None)
        if any(getattr(event, field) != value for field, value in wanted.items()):
            return False
        return _all_hold(vertex, event)


def _concerns(step: Step, event: Event) -> bool:
    """Whether an event has the class and the values that a step waits for."""
    return step.event is type(event) and all(
        isinstance(guard.accepts, Stored)
        or guard.holds(getattr(event, guard.field), None)
        for guard in step.guards
    )


def _all_hold(vertex: Vertex, event: Event) -> bool:
    """Whether all predicates of a step hold for an event."""
    predicates = vertex.step.predicates
    return all(
        call_application(vertex.name, one, copied(type(event), event))
        for one in predicates
    )


def settle_wait(change: WorkflowChange, event: Event) -> EventDecision:
    """Settle the oldest step that takes an event. Return the decision about the event."""
    waits = EventWaits(change.instance, change.plan)
    run = waits.find_taker(event)
    if run is None:
        return waits.outcome(event)
    _settle(change, run, event, encode(event))
    return "moved"


def wait_filter(change: WorkflowChange) -> Callable[[InboxEvent], bool]:
    """Return a function that tells whether the process takes an event of the inbox now, ignores or rejects it."""
    waits = EventWaits(change.instance, change.plan)

    def found(row: InboxEvent) -> bool:
        try:
            event = read_event(row)
            if waits.find_taker(event) is not None:
                return True
            return waits.outcome(event) != "parked"
        except BaseException:  # noqa: BLE001  # the delivery tries it, and shows the failure
            return True

    return found


def settle_choice(change: WorkflowChange, run: StepRun, choice: str) -> None:
    """Settle a step that asks, with an operator's choice.

    Raises:
        InvalidMessage: it is not one of the choices.
    """
    choices = change.plan[run.node].step.choices
    known = [str(member.value) for member in choices or ()]
    if choices is None or choice not in known:
        raise InvalidMessage(
            Text("%(choice)s is not one of %(choices)s", repr(choice), ", ".join(known))
        )
    _settle(change, run, decode(choices, choice), choice)


def _settle(change: WorkflowChange, run: StepRun, result: Any, body: Any) -> None:
    given = {"result": body, "checksum": digest(body), "error": ""}
    change.close_open(run, StepStatus.DONE, **given)
    settling.follow(change, run, result)


def sleeps_plainly(run: StepRun) -> bool:
    """Whether a claimed visit is a sleep that ends at its first attempt."""
    asleep = run.status == StepStatus.WAITING
    return run.kind == StepKind.SLEEP and asleep and run.attempt == 1


def settle_deadline(run: StepRun) -> None:
    """Carry out a claimed step's deadline. This raises nothing: every error is stored."""
    try:
        check_step_attempts(run, Policy())
        with transaction.atomic(durable=True):
            _late(run)
    except BaseException as error:  # noqa: BLE001  # the running code may have no such definition
        plan = _plan_of(run, error) if run.kind == StepKind.SLEEP else None
        step_failures.fail_run(run, error, plan, Policy())


def _plan_of(run: StepRun, error: BaseException) -> Plan | None:
    """The plan of a visit's workflow; None if the running code has none, or if making it may have ended a worker."""
    try:
        died = isinstance(error, WorkerDied)
        if died and not definitions.has_plan(run.instance):
            return None
        return definitions.plan_of(run.instance)
    except BaseException:  # noqa: BLE001  # the first error is the one that is stored
        return None


def _late(run: StepRun) -> None:
    """Take the step's late way; without one escalate the process, which goes on waiting. A sleep ends.

    Raises:
        LeaseLost: the process has ended, or the step was settled.
        HandlerMissing: the running code no longer has the step.
    """
    instance, now = instances.lock_live(run.instance_id)
    if instance.paused_at is not None:
        send([suspend(run)])
        return
    cause = Cause.of(CauseKind.DEADLINE, run.pk, run.deadlines_fired)
    change = WorkflowChange.of(instance, cause, now)
    step = change.plan[run.node].step
    if run.kind == StepKind.SLEEP:
        given = {"result": None, "checksum": digest(None), "error": ""}
        change.close(run, StepStatus.DONE, **given)
        settling.follow(change, run, None)
    elif step.late is not None:
        change.tell(Topic.DEADLINE, run.node)
        change.close(run, StepStatus.CANCELLED, error="the deadline has passed")
        follow_settled(change, Settled(run.node, run.visit, "late"))
    else:
        _escalate(change, run)
    change.write()


def _escalate(change: WorkflowChange, run: StepRun) -> None:
    """Escalate the process of a late step, which goes on waiting."""
    again = {"wake_at": None, "owner": "", "attempt": 0, "error": ""}
    fired = {"deadlines_fired": run.deadlines_fired + 1, **again}
    change.mark(step_runs.update(fired, run.fence))
    if run.error:
        change.mark(incidents.resolve(Text("done"), change.now, step_run_id=run.pk))
    change.touch(run, StepStatus.WAITING)
    change.tell(Topic.DEADLINE, run.node)
    change.escalate()
