"""Delivering events of several processes together: decided one by one without a lock, and written in one group commit.

Only what is decided purely goes together: an event that moves a process which is not in trouble, without a command that
is handled inside the commit. Nothing has happened outside by then, so that others may take over what is decided and not
written. Every other event, and each that the group commit leaves out, is delivered by itself (`delivery`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from orchestrator import registry
from orchestrator.definition import Decision, ProcessManager
from orchestrator.definition.codec import decode
from orchestrator.engine import inbox
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.claims import give_back
from orchestrator.engine.events.delivery import settle
from orchestrator.engine.steps.clock import Clock
from orchestrator.engine.storage import definitions, group_commit
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.engine.storage.tables import instances
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    ProcessInstance,
    Status,
    Verdict,
)

log = logging.getLogger(__name__)

MOST = 50
"""How many events one commit writes at most."""

HOLD_SECONDS = 0.01
"""For how long others are decided before what is decided is written."""

CALM = (Status.RUNNING, Status.WAITING)
"""How a process stands that nothing is wrong with."""


class Decided(NamedTuple):
    """An event that is decided and not written."""

    event: InboxEvent
    change: ManagerChange
    writes: list[Statement]


class EventGroup:
    """The events of one claimed batch that are delivered together.

    Args:
        events: the batch.
    """

    def __init__(self, events: Iterable[InboxEvent]) -> None:
        ids = {event.process_id for event in events if _is_simple(event)} - {None}
        self._known: dict[UUID, ProcessInstance] = {}
        self._clock = Clock()
        if len(ids) > 1:
            self._known, now = instances.read_many(ids)
            self._clock = Clock(now)
        self._decided: list[Decided] = []
        self._since = 0.0

    def decide(self, event: InboxEvent) -> bool:
        """Decides an event, if it goes together with others; whether it does."""
        instance = self._known.get(event.process_id) if event.process_id else None
        if instance is None or not _is_simple(event) or not _is_calm(instance):
            return False
        del self._known[instance.pk]  # until it is written
        try:
            decided = self._decided_on(event, instance)
        except Exception:  # noqa: BLE001  # by itself it is stored with what is wrong
            return False
        if decided is None:
            return False
        if not self._decided:
            self._since = time.monotonic()
        self._decided.append(decided)
        return True

    def _decided_on(
        self, event: InboxEvent, instance: ProcessInstance
    ) -> Decided | None:
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
        return Decided(event, change, change.prepared())

    @property
    def are_due(self) -> bool:
        """Whether what is decided is to be written now."""
        waited = time.monotonic() - self._since
        return bool(self._decided) and (
            len(self._decided) >= MOST or waited > HOLD_SECONDS
        )

    def write(self) -> list[InboxEvent]:
        """Writes what is decided, and returns the events that are to be delivered by themselves."""
        decided, self._decided = self._decided, []
        if len(decided) < 2:
            return [one.event for one in decided]
        written, refusal = group_commit.commit([one.writes for one in decided])
        if refusal is not None:  # each by itself tells whose it is
            log.info("some events could not be written together: %s", refusal)
            if passes(refusal):
                give_back.doubt()  # they may have been
        left_out = []
        for one, is_written in zip(decided, written, strict=True):
            if is_written:
                one.change.written()
                self._known[one.change.instance.pk] = one.change.instance
            else:
                left_out.append(one.event)
        return left_out


def _is_simple(event: InboxEvent) -> bool:
    """Whether nothing has been done about an event so far, and it names its process."""
    return bool(
        event.process_id is not None
        and not event.starts
        and event.verdict == Verdict.RECEIVED
        and event.attempt == 1
        and not event.error
    )


def _is_calm(instance: ProcessInstance) -> bool:
    """Whether a change of the process concerns nothing but itself."""
    return bool(
        instance.status in CALM
        and instance.finished_at is None
        and instance.paused_at is None
        and instance.parent_id is None
        and not instance.parked
    )


def _is_pure(decision: Decision) -> bool:
    """Whether none of its commands is handled inside the commit."""
    handlers = (
        registry.command_handler(type(one).__name__) for one in decision.commands
    )
    return all(handler is not None and handler.after_commit for handler in handlers)
