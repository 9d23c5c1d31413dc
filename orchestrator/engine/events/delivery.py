"""Delivering one claimed event.

1. find its process and lock it; 2. let the process manager decide; 3. run its transactional commands; 4. write
instance, step runs, checkpoint, commands, caused events and the event's verdict; 5. commit. Anything raised rolls all
of it back, and the event is tried again or becomes an incident (`failure`). An event that nothing takes now is kept.
"""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from django.db import transaction
from uuid6 import uuid7

from orchestrator import registry
from orchestrator.conf import conf
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.codec import decode
from orchestrator.engine import inbox
from orchestrator.engine.change.application_code import applications
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.claims.give_back import given_back
from orchestrator.engine.events import unrouted
from orchestrator.engine.events.parking import Parking
from orchestrator.engine.events.verdicts import EventHandling
from orchestrator.engine.failures import of_work
from orchestrator.engine.steps import waits
from orchestrator.engine.storage import beginnings, definitions
from orchestrator.engine.storage.batch import database_now, send
from orchestrator.engine.storage.tables import instances
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    ProcessInstance,
    Verdict,
)
from orchestrator.text import Text

log = logging.getLogger(__name__)


def deliver(event: InboxEvent) -> bool:
    """Delivers a claimed event; whatever goes wrong is stored with it. Nothing is raised for a failing handler.

    Returns:
        Whether it is decided, so that what was received after it may follow.
    """
    try:
        of_work.check_attempts(event, conf().EVENT_ATTEMPTS)
        with transaction.atomic(durable=True):
            return _deliver(event)
    except Exception as error:  # noqa: BLE001  # a handler may raise anything
        of_work.of_work(event, error)
    return False


def _deliver(event: InboxEvent) -> bool:
    if event.verdict == Verdict.UNROUTED and _started_by(event) is None:
        # Whoever starts its process gives it another verdict: it is still alone, and looked for once, below.
        instance, now = None, database_now()
    else:
        instance, now = _find(event)
    if instance is None and (definition := _started_by(event)) is not None:
        _start(event, definition, now)
        return True
    address = (event.process_id, event.target, event.correlation_key)
    if instance is None:
        if not beginnings.none_begins(*address):
            send([given_back(event, now + unrouted.FIRST_LOOK)])
            return False
        instance, now = _find(event)  # also what was beginning and has been committed
    if instance is None:
        unrouted.keep(event, now)
    else:
        _offer(event, instance, now)
    return True


def _find(event: InboxEvent) -> tuple[ProcessInstance | None, datetime]:
    """The event's process, locked: by id, or the live one, else the last one, of its correlation key."""
    if event.process_id is not None:
        return instances.lock(event.process_id)
    if event.correlation_key:
        starts = _started_by(event) is not None
        pk = of_key(event.target, event.correlation_key, starts=starts)
        if pk is not None:
            event.process_id = pk  # so that a failure is shown where it belongs
            return instances.lock(pk)
    return None, database_now()


def of_key(name: str, key: str, *, starts: bool) -> UUID | None:
    """The live process of a key, else the last one, unless the event starts another; None where there is none.

    Args:
        name: of the definition.
        key: the correlation key, not empty.
        starts: whether the event starts a process.
    """
    known = ProcessInstance.objects.filter(name=name, correlation_key=key)
    pk = known.live().values_list("pk", flat=True).first()
    if pk is None and not starts:
        pk = known.order_by("-id").values_list("pk", flat=True).first()
    return pk


def _started_by(event: InboxEvent) -> type[ProcessManager] | None:
    """The definition that the event may start, if any: one addressed to a process id must be meant to start it."""
    if not event.target or (event.process_id is not None and not event.starts):
        return None
    definition = registry.find_definition(event.target)
    if not issubclass(definition, ProcessManager):
        return None
    return definition if event.type in definition.starting_events() else None


def _offer(event: InboxEvent, instance: ProcessInstance, now: datetime) -> None:
    handling = Parking(event, now, instance)
    if instance.finished_at is not None:
        handling.turn_away_late()
        return
    definition = definitions.definition_of(instance)
    if instance.paused_at is not None:
        handling.rest(definition)
    elif issubclass(definition, Workflow):
        _offer_to_steps(handling, definition)
    else:
        _offer_to_manager(handling, definition)


def _offer_to_manager(handling: Parking, definition: type[ProcessManager]) -> None:
    event, instance, now = handling.event, handling.process, handling.now
    manager = definition(
        instance.pk, instance.step, decode(definition.Data, instance.data)
    )
    cause = Cause.of(CauseKind.EVENT, event.pk)
    move = ManagerChange(instance, cause, now, event.attempt)
    message = inbox.read(event.type, event.body)
    with applications():
        decision = manager.execute(message, move.execute)
    if decision.outcome == "moved":
        move.take(definition, decision)
        _settle(event, move, Verdict.MOVED)
        return

    def takes(row: InboxEvent) -> bool:
        return _decided(manager, row) != "parked"

    if decision.outcome == "parked":
        handling.park(definition, takes)
        return
    if decision.outcome == "ignored":
        marks = [handling.verdict(Verdict.IGNORED), *handling.cleared()]
    else:
        reason = Text(
            "%(type)s is rejected in step %(step)s", event.type, instance.step
        )
        marks = handling.turned_away(Verdict.REJECTED, reason)
    handling.leave(takes, marks)


def _decided(manager: ProcessManager, row: InboxEvent) -> str:
    """What a process would do with an event; one that cannot be decided on is to be tried, and fails where it shows."""
    try:
        message = inbox.read(row.type, row.body)
        return manager.decide(manager.step, manager.data, message).outcome
    except Exception:  # noqa: BLE001  # predicates may raise anything
        return "failed"


def _offer_to_steps(handling: Parking, definition: type[Workflow]) -> None:
    event, cause = handling.event, Cause.of(CauseKind.EVENT, handling.event.pk)
    change = WorkflowChange.of(handling.process, cause, handling.now)
    if waits.take(change, inbox.read(event.type, event.body)):
        _settle(event, change, Verdict.MOVED)
    else:
        handling.park(definition, waits.takes(change))


def _start(event: InboxEvent, definition: type[ProcessManager], now: datetime) -> None:
    message = inbox.read(event.type, event.body)
    if event.starts:
        instances.check_free(event.target, event.correlation_key)
    instance = ProcessInstance(
        id=event.process_id or uuid7(),
        definition_id=definitions.row_of(definition),
        name=definition.name,
        correlation_key=event.correlation_key,
        started_at=now,
    )
    cause = Cause.of(CauseKind.EVENT, event.pk)
    move = ManagerChange(instance, cause, now, event.attempt)
    first = definition(move.instance.pk, definition.first, None)
    with applications():
        decision = first.execute(message, move.execute)
    if decision.outcome != "moved":
        unrouted.keep(event, now)
        return
    move.take(definition, decision)
    known = event.process_id is not None
    move.mark(*inbox.early_events(move.instance, now, id_known=known))
    _settle(event, move, Verdict.STARTED)


def _settle(event: InboxEvent, move: ProcessChange, outcome: Verdict) -> None:
    settle(event, move, outcome)
    move.write()


def settle(event: InboxEvent, move: ProcessChange, outcome: Verdict) -> None:
    """Has an event settled with the change that it leads to."""
    move.instance.parked -= event.verdict == Verdict.PARKED
    handling = EventHandling(event, move.now, move.instance)
    verdict = handling.verdict(outcome, revision=move.revision)
    move.mark(verdict, *handling.cleared())
