"""One change of one process of a process manager: the decision, and the commands that it issues."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser

from orchestrator import registry
from orchestrator.definition import Command, Decision, ProcessManager
from orchestrator.definition.codec import decode, encode
from orchestrator.definition.declarations.handlers import CommandContext
from orchestrator.definition.declarations.message_forms import encode_message
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.incidents import STEP_LEFT, resolve
from orchestrator.engine.sql.batch import Statement
from orchestrator.engine.sql.row_objects import new_row
from orchestrator.engine.sql.tables import commands, outside_ids, step_runs
from orchestrator.engine.storage import inbox
from orchestrator.engine.storage.application_code.calling import (
    BlockingTransaction,
    call_application,
)
from orchestrator.engine.storage.application_code.errors import EngineErrors
from orchestrator.exceptions import HandlerMissing
from orchestrator.models import (
    Cause,
    CommandStatus,
    Delivery,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    command_id,
)
from orchestrator.queue import calls_queue, wake_queue_after_commit
from orchestrator.text import Text, storable_text

NO_USER = Text(
    "no active user has the name %(who)s", was="there is nobody with the name %(who)s"
)


class ManagerChange(ProcessChange):
    """One change of one locked process of a process manager; `attempt` is that of the cause."""

    def __init__(
        self, instance: ProcessInstance, cause: Cause, now: datetime, attempt: int = 1
    ) -> None:
        super().__init__(instance, cause, now)
        self.attempt = attempt
        self.issued: list[IssuedCommand] = []
        self.caused: list[InboxEvent] = []

    # Commands

    @EngineErrors()
    def execute(self, command: Command) -> None:
        """Carry a command out in this transaction, or put it in the outbox.

        Raises:
            HandlerMissing: the running code has no handler for it.
            Exception: any error of the handler; roll back.
        """
        kind = type(command).__name__
        handler = registry.command_handler(kind)
        if handler is None:
            raise HandlerMissing(
                "no handler for the command %(type)s in the running code", kind
            )
        row = new_row(
            IssuedCommand,
            id=command_id(self.instance.pk, self.revision, len(self.issued)),
            instance_id=self.instance.pk,
            revision=self.revision,
            type=kind,
            body=encode_message(command)[0],
            delivery=Delivery.AFTER_COMMIT
            if handler.after_commit
            else Delivery.IN_TRANSACTION,
            status=CommandStatus.READY if handler.after_commit else CommandStatus.DONE,
            queue=calls_queue(handler.queue) if handler.is_call else handler.queue,
            issued_at=self.now,
        )
        self.issued.append(row)
        if handler.after_commit:
            row.wake_at = self.now
            return
        context = CommandContext(
            self.instance.pk, row.id, self.attempt, self.instance.correlation_key
        )
        own = decode(type(command), row.body)  # the data must not share its lists
        with BlockingTransaction(kind):
            answer = call_application(kind, handler, own, context)
        said = secret_values.mask_line(answer.text, kind, row.body)
        row.answer, row.finished_at = storable_text(said), self.now
        row.follow_ups = len(answer.events)
        # The same commit stores them in the inbox.
        self.caused += inbox.follow_ups(self.instance, answer.events, row.id, self.now)

    # Steps

    def take(self, definition: type[ProcessManager], decision: Decision) -> None:
        """Apply a decision: step, data, deadlines, escalation."""
        instance = self.instance
        self.edge = decision.edge
        _line_up(self.issued, decision.at_once)
        was, instance.data = instance.data, encode(decision.data)
        self.writes += outside_ids.changes(definition, instance, was, instance.data)
        instance.summary = secret_values.summarize(
            definition, decision.data, instance.data
        )
        if decision.entered:
            self._enter(definition, decision)
        if decision.owner:
            self._assign(decision.owner)
        if decision.escalates:
            self.escalate()
        self.notify(decision.notifies)

    def _assign(self, name: str) -> None:
        """Assign the process to a person; escalate it if no active person has that name."""
        person = active_person(name)
        if person is None:
            self.escalate(NO_USER.filled(repr(name)))
        else:
            self.extra["owner"] = person.pk

    def _enter(self, definition: type[ProcessManager], decision: Decision) -> None:
        """End the visit of the current step and begin that of the next."""
        instance, final = self.instance, decision.step in definition.finals
        left = instance.step or str(definition.first)
        entered = new_row(
            StepRun,
            instance_id=instance.pk,
            definition=instance.name,
            stored_definition_id=instance.definition_id,
            process_started_at=instance.started_at,
            node=str(decision.step),
            status=StepStatus.DONE if final else StepStatus.WAITING,
            queue=definition.queue,
            wake_at=self.now + decision.timers[0] if decision.timers else None,
            started_at=self.now,
            finished_at=self.now if final else None,
        )
        if not self.new:
            self.go_to(entered)
        else:
            self.steps |= {left: StepStatus.DONE, entered.node: entered.status}
            visited = new_row(
                StepRun,
                instance_id=instance.pk,
                definition=instance.name,
                stored_definition_id=instance.definition_id,
                process_started_at=instance.started_at,
                node=left,
                status=StepStatus.DONE,
                started_at=instance.started_at,
                finished_at=self.now,
            )
            self.writes.append(step_runs.insert(visited, entered))
        instance.step = entered.node
        instance.status = Status.COMPLETED if final else Status.WAITING
        instance.finished_at = self.now if final else None

    def go_to(self, entered: StepRun) -> None:
        """End the visit of the current step and begin another one, by any way."""
        left = self.instance.step
        self.steps |= {left: StepStatus.DONE, entered.node: entered.status}
        self.writes += [self._leave(StepStatus.DONE, rows=1), step_runs.insert(entered)]
        if self.may_have_failed:
            self.mark(self._deadline_matters_no_more())
        self.instance.step = entered.node

    def end(self) -> None:
        """End the process at its present step, whose visit is cancelled."""
        instance = self.instance
        instance.status, instance.finished_at = Status.CANCELLED, self.now
        self.mark(self._leave(StepStatus.CANCELLED), self._deadline_matters_no_more())
        self.steps = {instance.step: StepStatus.CANCELLED}

    def _leave(self, status: StepStatus, rows: int | None = None) -> Statement:
        """The update that ends the open visit of the current step."""
        left = {"status": status, "finished_at": self.now, "wake_at": None, "owner": ""}
        mine = {"instance_id": self.instance.pk, "finished_at": None}
        return step_runs.update(left, mine, rows)

    def _deadline_matters_no_more(self) -> Statement:
        kind = Incident.Kind.DEADLINE_FAILED
        about = {"kind": kind, "instance_id": self.instance.pk}
        return resolve(STEP_LEFT, self.now, **about)

    # Writing

    def columns(self) -> dict[str, Any]:
        return {"data": self.instance.data, "summary": self.instance.summary}

    def prepare(self) -> list[Statement]:
        issued = [commands.insert(*self.issued)] if self.issued else []
        caused = inbox.event_inserts(self.caused) if self.caused else []
        return [*super().prepare(), *issued, *caused]

    def after_write(self) -> None:
        super().after_write()
        for queue in {row.queue for row in self.issued if row.wake_at is not None}:
            wake_queue_after_commit(queue)


def _line_up(issued: Sequence[IssuedCommand], free: Collection[int]) -> None:
    """Let each command after the commit wait for the one before it, except for those in the free places."""
    before: IssuedCommand | None = None
    for place, row in enumerate(issued):
        if row.delivery != Delivery.AFTER_COMMIT or place in free:
            continue
        if before is not None:
            before.holds = row.id
            row.status, row.wake_at = CommandStatus.HELD, None
        before = row


def wake_next(command: IssuedCommand, now: datetime) -> list[Statement]:
    """Return the update that makes the command due that waits for this one, and wakes its queue after the commit."""
    if command.holds is None:
        return []

    def wake_queues(rows: list[Any]) -> None:
        for (queue,) in rows:
            wake_queue_after_commit(queue)

    due = {"status": CommandStatus.READY, "wake_at": now}
    held = {"id": command.holds, "status": CommandStatus.HELD}
    return [commands.update(due, held, rows=None).returning("queue", wake_queues)]


def active_person(name: str) -> AbstractBaseUser | None:
    """Return the active user who signs in with this name, of the project's own user model, if any."""
    model = get_user_model()
    found = model._default_manager.filter(**{model.USERNAME_FIELD: name}).first()
    return found if found is not None and found.is_active else None
