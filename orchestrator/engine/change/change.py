"""The one way to change an instance.

Whatever moves a process (event, deadline, failure, operator) collects its writes in a Transition while the instance's
row is locked; they go out in one message with the revision as a second net, and are announced after the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from uuid6 import uuid7

from orchestrator import registry
from orchestrator.conf import conf
from orchestrator.definition import Command, Decision, Event, ProcessManager
from orchestrator.definition.codec import digest, encode
from orchestrator.engine import inbox
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.change.incidents import resolved, storable
from orchestrator.engine.change.status import TROUBLED, standing
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import Statement, send, send_apart
from orchestrator.engine.storage.tables import (
    checkpoints,
    commands,
    events,
    instances,
    step_runs,
)
from orchestrator.exceptions import HandlerMissing, LimitReached
from orchestrator.models import (
    Cause,
    Checkpoint,
    CommandStatus,
    Delivery,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.queue import ring_after_commit
from orchestrator.registry import CommandContext


class Transition:
    """One change of one locked instance.

    Args:
        instance: the locked row, or a new one that is not stored yet.
        cause: what moves it, unique within the process.
        now: the database's time, for everything this transition writes.
    """

    def __init__(self, instance: ProcessInstance, cause: Cause, now: datetime) -> None:
        self.instance = instance
        self.cause = cause
        self.now = now
        self.new = instance.revision == 0
        self.revision = instance.revision + 1
        self.edge = ""
        self.apart = False  # whether no row is written twice
        self.steps: dict[str, str] = {}
        self.marks: list[Statement] = []
        self.writes: list[Statement] = []
        self.issued: list[IssuedCommand] = []
        self.caused: list[InboxEvent] = []
        self._was = instance.status

    def mark(self, *statements: Statement) -> None:
        """Adds what settles the cause itself, under its fence; it is sent before everything else."""
        self.marks += statements

    def execute(self, command: Command) -> None:
        """Carries a command out in this transaction, or puts it in the outbox.

        Raises:
            HandlerMissing: the running code cannot handle it.
            Exception: whatever the handler raises; the transaction must be rolled back.
        """
        kind = type(command).__name__
        handler = registry.command_handler(kind)
        if handler is None:
            raise HandlerMissing(
                f"no handler for the command {kind} in the running code"
            )
        row = IssuedCommand(
            id=uuid5(self.instance.pk, f"{self.revision}:{len(self.issued)}"),
            instance_id=self.instance.pk,
            revision=self.revision,
            type=kind,
            body=encode(command),
            delivery=Delivery.AFTER_COMMIT
            if handler.after_commit
            else Delivery.IN_TRANSACTION,
            status=CommandStatus.READY if handler.after_commit else CommandStatus.DONE,
            queue=handler.queue,
            issued_at=self.now,
        )
        self.issued.append(row)
        if handler.after_commit:
            row.wake_at = self.now
            ring_after_commit(handler.queue)
            return
        context = CommandContext(
            self.instance.pk, row.id, 1, self.instance.correlation_key
        )
        answer = handler(command, context)
        row.answer, row.finished_at = storable(answer.text), self.now
        self.cause_events(answer.events, row.id)

    def cause_events(self, happened: Sequence[Event], command_id: UUID) -> None:
        """Puts the events that a handler returned into the inbox of this same commit."""
        self.caused += inbox.follow_ups(self.instance, happened, command_id, self.now)

    def take(self, definition: type[ProcessManager], decision: Decision) -> None:
        """Takes over a decision: step, data, deadlines, escalation."""
        instance = self.instance
        self.edge = decision.edge
        instance.data = encode(decision.data)
        instance.summary = definition.summary(decision.data)[:200]
        if decision.entered:
            self._enter(definition, decision)
        if decision.escalates:
            self.escalate()

    def escalate(self) -> None:
        """Raises the escalation level, for people to see."""
        self.instance.escalation_level += 1
        self.instance.escalated_at = self.now

    def _enter(self, definition: type[ProcessManager], decision: Decision) -> None:
        """Ends the visit of the current step and begins that of the next."""
        instance, final = self.instance, decision.step in definition.finals
        left = instance.step or str(definition.first)
        entered = StepRun(
            instance_id=instance.pk,
            node=str(decision.step),
            status=StepStatus.DONE if final else StepStatus.WAITING,
            queue=definition.queue,
            wake_at=self.now + decision.timers[0] if decision.timers else None,
            started_at=self.now,
            finished_at=self.now if final else None,
        )
        self.steps |= {left: StepStatus.DONE, entered.node: entered.status}
        if self.new:
            visited = StepRun(
                instance_id=instance.pk,
                node=left,
                status=StepStatus.DONE,
                started_at=instance.started_at,
                finished_at=self.now,
            )
            self.writes.append(step_runs.insert(visited, entered))
        else:
            self.writes += [end_visit(instance, self.now), step_runs.insert(entered)]
            if self._was in TROUBLED:
                self.mark(resolved_deadline(instance, self.now))
        instance.step = entered.node
        instance.status = Status.COMPLETED if final else Status.WAITING
        instance.finished_at = self.now if final else None

    def write(self) -> None:
        """Sends everything in one message and has the change announced after the commit.

        Raises:
            LeaseLost: somebody else moved the instance or settled the cause; roll back.
        """
        self._stand()
        self._check_limit()
        # The process first, as everybody locks it: whoever has not locked it yet must not hold one of its rows.
        self._send([self._instance(), *self.marks, *self.writes, *self._rows()])
        self.instance.revision = self.revision
        announce(self.instance, self.steps or {self.instance.step: ""}, self.edge)

    def _send(self, statements: list[Statement]) -> None:
        # A parked event that is offered again may be the one that is settled.
        apart = self.apart and not self.instance.parked and self._was not in TROUBLED
        (send_apart if apart else send)(statements)

    def _stand(self) -> None:
        """Works out how the process stands now."""
        if self._was in TROUBLED and self.instance.finished_at is None:
            send(self.marks)  # what is settled now no longer counts as trouble
            self.marks = []
            self.instance.status = standing(self.instance)

    def _check_limit(self) -> None:
        """Stops a process that goes round for ever; showing that it has failed is still allowed."""
        limit = conf().TRANSITIONS_LIMIT
        if self.revision > limit and self.instance.status != Status.FAILED:
            most = f"the process has made {limit:,} transitions, the most it may"
            raise LimitReached(f"{most} (PROCESSION TRANSITIONS_LIMIT)")

    def _instance(self) -> Statement:
        instance = self.instance
        if self.new:
            instance.changed_at, instance.revision = self.now, self.revision
            return instances.insert(instance)
        return instances.update(self._changed(), self._known())

    def _known(self) -> dict[str, Any]:
        """What the stored instance must still say."""
        return {"id": self.instance.pk, "revision": self.revision - 1}

    def _changed(self) -> dict[str, Any]:
        """The columns of the instance that may have changed."""
        instance = self.instance
        return {
            "status": instance.status,
            "step": instance.step,
            "data": instance.data,
            "summary": instance.summary,
            "revision": self.revision,
            "parked": 0,
            "escalation_level": instance.escalation_level,
            "escalated_at": instance.escalated_at,
            "changed_at": self.now,
            "finished_at": instance.finished_at,
        }

    def _steps(self) -> list[str]:
        """What the checkpoint says of the steps."""
        return [self.instance.step] if self.instance.step else []

    def _data(self) -> Any:
        """What the checkpoint keeps of the data."""
        return self.instance.data

    def _rows(self) -> list[Statement]:
        instance = self.instance
        rows = [
            checkpoints.insert(
                Checkpoint(
                    instance_id=instance.pk,
                    revision=self.revision,
                    cause=str(self.cause),
                    edge=self.edge,
                    steps=self._steps(),
                    status=instance.status,
                    data=(data := self._data()),
                    checksum=digest(data),
                    at=self.now,
                )
            )
        ]
        if self.issued:
            rows.append(commands.insert(*self.issued))
        if self.caused:
            rows.append(events.insert(*self.caused))
            for event in self.caused:
                rows += inbox.reactions([event])
        if instance.parked:
            rows.append(offer_again(instance, self.now))
        return rows


def begin(
    definition: type[ProcessManager],
    process_id: UUID | None,
    key: str,
    cause: Cause,
    now: datetime,
) -> Transition:
    """The first transition of a new process."""
    instance = ProcessInstance(
        id=process_id or uuid7(),
        definition_id=definitions.row_of(definition),
        name=definition.name,
        correlation_key=key,
        started_at=now,
    )
    return Transition(instance, cause, now)


def end_visit(instance: ProcessInstance, now: datetime) -> Statement:
    """Ends the open visit of a process manager's current step."""
    return step_runs.update(
        {"status": StepStatus.DONE, "finished_at": now, "wake_at": None, "owner": ""},
        {"instance_id": instance.pk, "finished_at": None},
    )


def resolved_deadline(instance: ProcessInstance, now: datetime) -> Statement:
    """A deadline that failed matters no more once its step is left."""
    about = {"kind": Incident.Kind.DEADLINE_FAILED, "instance_id": instance.pk}
    return resolved("its step was left", now, **about)


def offer_again(instance: ProcessInstance, now: datetime) -> Statement:
    """Makes all parked events of an instance due: it may have reached a step that takes them."""
    return events.update(
        {"wake_at": now},
        {"process_id": instance.pk, "verdict": Verdict.PARKED},
        rows=None,
    )
