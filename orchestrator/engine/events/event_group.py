"""Deciding, without a lock, which events of several processes share a commit, and the change that each causes.

Only pure decisions share one: the event moves a process without trouble, and no command is handled inside the commit.
Nothing has happened outside by then, so other workers may take decided events over before they are written. Every other
event, and each that the group commit leaves out, is delivered singly (`delivery`).
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from orchestrator import registry
from orchestrator.definition import Decision, ProcessManager
from orchestrator.definition.codec import decode
from orchestrator.engine.change.change import is_independent
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.events.delivery import settle_event
from orchestrator.engine.sql.batch import Clock
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.storage import definitions, inbox
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    ProcessInstance,
    Status,
    Verdict,
)

CALM = (Status.RUNNING, Status.WAITING)
"""The statuses of a process without trouble."""


class EventGroup:
    """The processes of one claimed batch of events that may share a commit, as they were read.

    Args:
        events: the batch.
    """

    def __init__(self, events: Iterable[InboxEvent]) -> None:
        ids = {event.process_id for event in events if _is_simple(event)} - {None}
        self._known: dict[UUID | None, ProcessInstance] = {}
        self._clock = Clock()
        if len(ids) > 1:
            known, now = instances.read_many(ids)
            self._known |= known
            self._clock = Clock(now)

    def decide(self, event: InboxEvent) -> ManagerChange | None:
        """Return the change that an event causes, not written; None for an event that is delivered singly."""
        instance = self._known.get(event.process_id)
        if instance is None or not _is_simple(event) or instance.status not in CALM:
            return None
        if not is_independent(instance):
            return None
        del self._known[instance.pk]  # until it is written
        try:
            return self._decided_on(event, instance)
        except Exception:  # noqa: BLE001  # the single delivery stores the error
            return None

    def _decided_on(
        self, event: InboxEvent, instance: ProcessInstance
    ) -> ManagerChange | None:
        definition = definitions.definition_of(instance)
        if not issubclass(definition, ProcessManager):
            return None
        data = decode(definition.Data, instance.data)
        manager = definition(instance.pk, instance.step, data)
        message = inbox.parse_event(event.type, event.body)
        decision = manager.decide(manager.step, manager.data, message)
        if decision.outcome != "moved" or not _is_pure(decision):
            return None
        cause = Cause.of(CauseKind.EVENT, event.pk)
        change = ManagerChange(instance, cause, self._clock.now(), event.attempt)
        change.alone = True
        for command in decision.commands:
            change.execute(command)
        change.take(definition, decision)
        settle_event(event, change, Verdict.MOVED)
        return change

    def learn(self, instance: ProcessInstance) -> None:
        """Note that a process is stored as it is here."""
        self._known[instance.pk] = instance


def _is_simple(event: InboxEvent) -> bool:
    """Whether an event names its process, and this is its first attempt."""
    return bool(
        event.process_id is not None
        and not event.starts
        and event.verdict == Verdict.RECEIVED
        and event.attempt == 1
        and not event.error
    )


def _is_pure(decision: Decision) -> bool:
    """Whether none of its commands is handled inside the commit."""
    handlers = (
        registry.command_handler(type(one).__name__) for one in decision.commands
    )
    return all(handler is not None and handler.after_commit for handler in handlers)
