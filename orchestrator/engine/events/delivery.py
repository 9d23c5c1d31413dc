"""Delivering one claimed event.

1. Find its process and lock it. 2. Let the process manager decide. 3. Run its transactional commands. 4. Write
instance, step runs, checkpoint, commands, caused events and the event's verdict. 5. Commit. Any error rolls all of it
back; the event gets another attempt or an incident (`failures.fail_work`). An event that no step takes now is parked.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from uuid6 import uuid7

from orchestrator import registry
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event, ProcessManager, Workflow
from orchestrator.definition.declarations.transition_rows import EventDecision
from orchestrator.engine.change import offering
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.events import other_definitions, unrouted_events
from orchestrator.engine.events.parking import Parking, Takes
from orchestrator.engine.events.verdicts import EventHandling
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.steps import waiting_steps
from orchestrator.engine.storage import (
    definitions,
    inbox,
    start_locks,
    stored_values,
)
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.engine.work import failures
from orchestrator.engine.work.releasing import release
from orchestrator.exceptions import UnknownEventType
from orchestrator.models import Cause, CauseKind, InboxEvent, ProcessInstance, Verdict
from orchestrator.text import Text

log = logging.getLogger(__name__)


def deliver_claimed(event: InboxEvent) -> bool:
    """Deliver a claimed event. This raises nothing: every error is stored with the event.

    Returns:
        Whether the event is decided, so that later events of its process may follow.
    """
    # Another release may have stored it under a former name, which no row and no step has.
    event.type = registry.current_name(event.type)
    try:
        failures.check_attempts(event, conf().EVENT_ATTEMPTS)
        with transaction.atomic(durable=True):
            return _deliver(event)
    except BaseException as error:  # noqa: BLE001  # a handler may raise anything
        failures.fail_work(event, error)
    return False


def _deliver(event: InboxEvent) -> bool:
    if event.verdict == Verdict.UNROUTED and _started_by(event) is None:
        # The start of its process would have changed the verdict: the process is looked up only once, below.
        instance, now = None, database_now()
    else:
        instance, now = _find(event)
    if instance is None and (definition := _started_by(event)) is not None:
        return _start(event, definition, now)
    address = (event.process_id, event.target, event.correlation_key)
    if instance is None:
        if not start_locks.lock_out_starts(*address):
            send([release(event, now + other_definitions.FIRST_LOOK)])
            return False
        instance, now = _find(event)  # a start that was running may have been committed
    if instance is None:
        unrouted_events.keep_unrouted(event, now)
        return True
    return _offer(event, instance, now)


def _find(event: InboxEvent) -> tuple[ProcessInstance | None, datetime]:
    """The event's process, locked: found by its id, or the live one, else the last one, with its correlation key."""
    if event.process_id is not None:
        return instances.lock(event.process_id)
    if event.correlation_key:
        starts = _started_by(event) is not None
        pk = find_by_key(event.target, event.correlation_key, starts=starts)
        if pk is not None:
            event.process_id = pk  # so that a failure is shown with this process
            return instances.lock(pk)
    return None, database_now()


def find_by_key(name: str, key: str, *, starts: bool) -> UUID | None:
    """Return the id of the live process with a key, else of the last one, unless the event starts another.

    Args:
        name: the definition's name.
        key: the correlation key, not empty.
        starts: whether the event starts a process.
    """
    known = ProcessInstance.objects.filter(name=name, correlation_key=key)
    pk = known.live().values_list("pk", flat=True).first()
    if pk is None and not starts:
        pk = known.newest_first().values_list("pk", flat=True).first()
    return pk


def _started_by(event: InboxEvent) -> type[ProcessManager] | None:
    """The definition that the event may start, if any; an event with a process id must be a start itself."""
    if not event.target or (event.process_id is not None and not event.starts):
        return None
    definition = registry.find_definition(event.target)
    if not issubclass(definition, ProcessManager):
        return None
    return definition if event.type in definition.starting_events() else None


def _offer(event: InboxEvent, instance: ProcessInstance, now: datetime) -> bool:
    """Offer an event to its locked process, unless an older one came to be offered since the claim."""
    handling = Parking(event, now, instance)
    if instance.finished_at is not None:
        handling.turn_away_late()
        return True
    definition = definitions.definition_of(instance)
    if instance.paused_at is not None:
        handling.rest(definition)
    elif offering.is_overtaking(event, instance):
        send([release(event, now)])
        return False
    else:
        _offer_to_live(handling, definition)
    return True


def _offer_to_live(handling: Parking, definition: registry.DefinitionClass) -> None:
    """Offer an event to a live process; park one whose type the running code lacks."""
    try:
        registry.event_class(handling.event.type)
    except UnknownEventType as error:
        handling.wait_for_code(definition, error)
        return
    message = stored_values.read_event(handling.event)
    if issubclass(definition, Workflow):
        _offer_to_steps(handling, definition, message)
    else:
        _offer_to_manager(handling, definition, message)


def _offer_to_manager(
    handling: Parking, definition: type[ProcessManager], message: Event
) -> None:
    event, instance, now = handling.event, handling.process, handling.now
    manager = stored_values.read_manager(definition, instance, instance.step)
    cause = Cause.of(CauseKind.EVENT, event.pk)
    move = ManagerChange(instance, cause, now, event.attempt)
    decision = call_application(event.type, manager.execute, message, move.execute)
    if decision.outcome == "moved":
        move.take(definition, decision)
        _settle(event, move, Verdict.MOVED)
        return

    def takes(row: InboxEvent) -> bool:
        return _decided(manager, row) != "parked"

    _dispose(handling, definition, decision.outcome, takes)


def _dispose(
    handling: Parking,
    definition: registry.DefinitionClass,
    outcome: EventDecision,
    takes: Takes,
) -> None:
    """Park, ignore or reject an event that moves nothing."""
    if outcome == "parked":
        handling.park(definition, takes)
        return
    if outcome == "ignored":
        marks = [handling.verdict(Verdict.IGNORED), *handling.clear()]
    else:
        kind, step = handling.event.type, handling.process.step
        reason = Text("%(type)s is rejected in step %(step)s", kind, step)
        marks = handling.turn_away(Verdict.REJECTED, reason)
    handling.leave(takes, marks)


def _decided(manager: ProcessManager, row: InboxEvent) -> str:
    """The decision of a process on an event. If this decision fails, the delivery tries it and shows the failure."""
    try:
        message = stored_values.read_event(row)
        step, data = manager.step, manager.data
        return call_application(row.type, manager.decide, step, data, message).outcome
    except BaseException:  # noqa: BLE001  # predicates may raise anything
        return "failed"


def _offer_to_steps(
    handling: Parking, definition: type[Workflow], message: Event
) -> None:
    event, cause = handling.event, Cause.of(CauseKind.EVENT, handling.event.pk)
    change = WorkflowChange.of(handling.process, cause, handling.now)
    outcome = waiting_steps.settle_wait(change, message)
    if outcome == "moved":
        _settle(event, change, Verdict.MOVED)
    else:
        _dispose(handling, definition, outcome, waiting_steps.wait_filter(change))


def _start(event: InboxEvent, definition: type[ProcessManager], now: datetime) -> bool:
    """Start a process by an event. Return whether there were no early events, which come before the later ones."""
    message = stored_values.read_event(event)
    if event.starts:
        instances.check_free(event.target, event.correlation_key)
    instance = ProcessInstance(
        id=event.process_id or uuid7(),
        definition_id=definitions.row_key(definition),
        name=definition.name,
        correlation_key=event.correlation_key,
        started_at=now,
    )
    cause = Cause.of(CauseKind.EVENT, event.pk)
    move = ManagerChange(instance, cause, now, event.attempt)
    first = definition(move.instance.pk, definition.first, None)
    decision = call_application(event.type, first.execute, message, move.execute)
    if decision.outcome != "moved":
        unrouted_events.keep_unrouted(event, now)
        return True
    move.take(definition, decision)
    known, early = event.process_id is not None, list[Any]()
    again = inbox.early_events(instance, now, id_known=known, receive=early.extend)
    move.mark(*again)
    _settle(event, move, Verdict.STARTED)
    return not early


def _settle(event: InboxEvent, move: ProcessChange, outcome: Verdict) -> None:
    settle_event(event, move, outcome)
    move.write()


def settle_event(event: InboxEvent, move: ProcessChange, outcome: Verdict) -> None:
    """Settle an event with the change that it causes."""
    move.instance.parked -= event.verdict == Verdict.PARKED
    handling = EventHandling(event, move.now, move.instance)
    verdict = handling.verdict(outcome, revision=move.revision)
    move.mark(verdict, *handling.clear())
