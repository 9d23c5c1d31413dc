"""Which events of several processes are written together, and what each leads to, decided without a lock.

Only what is decided purely goes together: an event that moves a process which is not in trouble, without a command that
is handled inside the commit. Nothing has happened outside by then, so that others may take over what is decided and not
written. Every other event, and each that the group commit leaves out, is delivered by itself (`delivery`).
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from orchestrator import registry
from orchestrator.definition import Decision, ProcessManager
from orchestrator.definition.codec import decode
from orchestrator.engine import inbox
from orchestrator.engine.change.change import is_by_itself
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.events.delivery import settle
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import Clock
from orchestrator.engine.storage.tables import instances
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    ProcessInstance,
    Status,
    Verdict,
)

CALM = (Status.RUNNING, Status.WAITING)
"""How a process stands that nothing is wrong with."""


class EventGroup:
    """The processes of one claimed batch of events that may be written together, as they were read.

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
        """The change that an event leads to, not written; None where it does not go together with others."""
        instance = self._known.get(event.process_id)
        if instance is None or not _is_simple(event) or instance.status not in CALM:
            return None
        if not is_by_itself(instance):
            return None
        del self._known[instance.pk]  # until it is written
        try:
            return self._decided_on(event, instance)
        except Exception:  # noqa: BLE001  # by itself it is stored with what is wrong
            return None

    def _decided_on(
        self, event: InboxEvent, instance: ProcessInstance
    ) -> ManagerChange | None:
        definition = definitions.definition_of(instance)
        if not issubclass(definition, ProcessManager):
            return None
        data = decode(definition.Data, instance.data)
        manager = definition(instance.pk, instance.step, data)
        message = inbox.read(event.type, event.body)
        decision = manager.decide(manager.step, manager.data, message)
        if decision.outcome != "moved" or not _is_pure(decision):
            return None
        cause = Cause.of(CauseKind.EVENT, event.pk)
        change = ManagerChange(instance, cause, self._clock.now(), event.attempt)
        change.alone = True
        for command in decision.commands:
            change.execute(command)
        change.take(definition, decision)
        settle(event, change, Verdict.MOVED)
        return change

    def learn(self, instance: ProcessInstance) -> None:
        """Notes that a process is stored as it is here."""
        self._known[instance.pk] = instance


def _is_simple(event: InboxEvent) -> bool:
    """Whether nothing has been done about an event so far, and it names its process."""
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
