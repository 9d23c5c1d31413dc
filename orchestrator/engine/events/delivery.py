"""Delivering one claimed event.

1. find its process and lock it; 2. let the process manager decide; 3. run its transactional commands; 4. write
instance, step runs, checkpoint, commands, caused events and the event's verdict; 5. commit. Anything raised rolls all
of it back, and the event is tried again or becomes an incident (`failure`). An event that nothing takes now is kept.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from orchestrator import registry
from orchestrator.conf import conf
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.codec import decode
from orchestrator.engine import inbox
from orchestrator.engine.change import incidents
from orchestrator.engine.change.announcements import announce_event
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.failures import of_work
from orchestrator.engine.steps import waits
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import Statement, database_now, send
from orchestrator.engine.storage.tables import events, instances
from orchestrator.exceptions import KeyTaken, LeaseLost, WorkerDied
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    Incident,
    ProcessInstance,
    Verdict,
)
from orchestrator.registry import Declared

log = logging.getLogger(__name__)


def deliver(event: InboxEvent) -> None:
    """Delivers a claimed event; whatever goes wrong is stored with it. Nothing is raised for a failing handler."""
    try:
        if event.attempt > conf().EVENT_ATTEMPTS:
            raise WorkerDied(
                f"the worker died or was killed in each of {event.attempt - 1} attempts"
            )
        with transaction.atomic(durable=True):
            _deliver(event)
    except LeaseLost as lost:
        log.info("event %s was settled by another worker: %s", event.pk, lost)
    except Exception as error:  # noqa: BLE001  # a handler may raise anything
        of_work.of_event(event, error)


def _deliver(event: InboxEvent) -> None:
    instance, now = _find(event)
    if instance is not None:
        _offer(event, instance, now)
    elif (definition := _started_by(event)) is not None:
        _start(event, definition, now)
    else:
        _keep_unrouted(event, now)


def _find(event: InboxEvent) -> tuple[ProcessInstance | None, datetime]:
    """The event's process, locked: by id, or the live one, else the last one, of its correlation key."""
    if event.process_id is not None:
        return instances.lock(event.process_id)
    if event.correlation_key:
        known = ProcessInstance.objects.filter(
            name=event.target, correlation_key=event.correlation_key
        )
        pk = known.live().values_list("pk", flat=True).first()
        if pk is None and _started_by(event) is None:
            pk = known.order_by("-id").values_list("pk", flat=True).first()
        if pk is not None:
            event.process_id = pk  # so that a failure is shown where it belongs
            return instances.lock(pk)
    return None, database_now()


def _started_by(event: InboxEvent) -> type[ProcessManager] | None:
    """The definition that the event may start, if any: one addressed to a process id must be meant to start it."""
    if not event.target or (event.process_id is not None and not event.starts):
        return None
    definition = registry.definition(event.target)
    if not issubclass(definition, ProcessManager):
        return None
    return definition if event.type in definition.starting_events() else None


def _offer(event: InboxEvent, instance: ProcessInstance, now: datetime) -> None:
    if instance.finished_at is not None:
        _turn_away(event, instance, Verdict.UNEXPECTED, _late(event), now)
        return
    definition = definitions.definition_of(instance)
    if instance.paused_at is not None:
        _keep_resting(event, instance, definition, now)
        return
    if issubclass(definition, Workflow):
        _offer_to_steps(event, instance, definition, now)
        return
    manager = definition(
        instance.pk, instance.step, decode(definition.Data, instance.data)
    )
    move = ManagerChange(instance, Cause.of(CauseKind.EVENT, event.pk), now)
    decision = manager.execute(inbox.read(event.type, event.body), move.execute)
    if decision.outcome == "moved":
        move.take(definition, decision)
        _settle(event, move, Verdict.MOVED)
    elif decision.outcome == "ignored":
        marks = [verdict(event, Verdict.IGNORED, now, instance), *_cleared(event, now)]
        _put_aside(event, instance, marks, now)
    elif decision.outcome == "rejected":
        reason = f"{event.type} is rejected in step {instance.step}"
        _turn_away(event, instance, Verdict.REJECTED, reason, now)
    else:
        _park(event, instance, definition, now)


def _offer_to_steps(
    event: InboxEvent,
    instance: ProcessInstance,
    definition: type[Workflow],
    now: datetime,
) -> None:
    cause = Cause.of(CauseKind.EVENT, event.pk)
    change = WorkflowChange.of(instance, cause, now)
    if waits.take(change, inbox.read(event.type, event.body)):
        _settle(event, change, Verdict.MOVED)
    else:
        _park(event, instance, definition, now)


def _start(event: InboxEvent, definition: type[ProcessManager], now: datetime) -> None:
    message = inbox.read(event.type, event.body)
    _check_key(event)
    move = ManagerChange.begin(
        definition,
        event.process_id,
        event.correlation_key,
        Cause.of(CauseKind.EVENT, event.pk),
        now,
    )
    first = definition(move.instance.pk, definition.first, None)
    decision = first.execute(message, move.execute)
    if decision.outcome != "moved":
        _keep_unrouted(event, now)
        return
    move.take(definition, decision)
    move.mark(*inbox.early_events(move.instance, now))
    _settle(event, move, Verdict.STARTED)


def _check_key(event: InboxEvent) -> None:
    """Says clearly what the table's constraint would say too."""
    if event.process_id is None or not event.correlation_key:
        return
    same = {"name": event.target, "correlation_key": event.correlation_key}
    if ProcessInstance.objects.live().filter(**same).exists():
        raise KeyTaken(
            f"there is already a live {event.target} with the key {event.correlation_key!r}"
        )


def _settle(event: InboxEvent, move: ProcessChange, outcome: Verdict) -> None:
    move.mark(verdict(event, outcome, move.now, move.instance, revision=move.revision))
    move.mark(*_cleared(event, move.now))
    move.write()


def _cleared(event: InboxEvent, now: datetime) -> list[Statement]:
    """Resolves what was wrong with an event before."""
    if not event.error:
        return []
    return [incidents.resolved("handled", now, event_id=event.pk)]


def _park(
    event: InboxEvent,
    instance: ProcessInstance,
    definition: Declared,
    now: datetime,
) -> None:
    """Keeps an event that its process does not expect now; after its patience it is shown as unexpected."""
    until = event.patience_until or now + inbox.patience(definition)
    if until <= now:
        reason = f"{event.type} is not expected in step {instance.step}"
        _turn_away(event, instance, Verdict.UNEXPECTED, reason, now)
        return
    kept = {"wake_at": until, "patience_until": until, "attempt": 0}
    marks = [
        verdict(event, Verdict.PARKED, now, instance, **kept),
        *_cleared(event, now),
        instances.update({"parked": instance.parked + 1}, {"id": instance.pk}),
    ]
    _put_aside(event, instance, marks, now)


def _keep_resting(
    event: InboxEvent, instance: ProcessInstance, definition: Declared, now: datetime
) -> None:
    """Keeps an event whose process stands still, with the patience it has left."""
    until = event.patience_until or now + inbox.patience(definition)
    kept = {"patience_until": None, "remaining": until - now, "attempt": 0}
    marks = [
        verdict(event, Verdict.PARKED, now, instance, error=event.error, **kept),
        instances.update({"parked": instance.parked + 1}, {"id": instance.pk}),
    ]
    send(marks)
    announce_event(event)


def _keep_unrouted(event: InboxEvent, now: datetime) -> None:
    """Keeps an event whose process is unknown: looks again ever less often, and tells people after its patience."""
    until = event.patience_until or now + inbox.patience(None)
    waited = max(now - event.received_at, timedelta(seconds=1))
    kept: dict[str, Any] = {"patience_until": until, "attempt": 0}
    if now < until:
        kept["wake_at"] = min(until, now + waited)
    statements = [
        verdict(event, Verdict.UNROUTED, now, None, error=event.error, **kept)
    ]
    if now >= until:
        reason = f"no process takes {event.type}: {_address(event)}"
        statements = [
            verdict(event, Verdict.UNROUTED, now, None, error=reason, **kept),
            incidents.resolved("seen again", now, event_id=event.pk),
            incidents.opened(
                Incident.Kind.UNROUTED_EVENT, reason, now, event_id=event.pk
            ),
        ]
    send(statements)
    announce_event(event)


def _address(event: InboxEvent) -> str:
    if event.process_id:
        return f"there is no process {event.process_id}"
    if event.correlation_key:
        return f"there is no {event.target} with the key {event.correlation_key!r}"
    return "it names no process and carries no correlation key"


def _late(event: InboxEvent) -> str:
    return f"{event.type} came after the process had ended"


def _turn_away(
    event: InboxEvent,
    instance: ProcessInstance,
    outcome: Verdict,
    reason: str,
    now: datetime,
) -> None:
    """Shows an event to people: rejected at once, or unexpected after its patience or the end of its process."""
    kind = (
        Incident.Kind.REJECTED_EVENT
        if outcome == Verdict.REJECTED
        else Incident.Kind.UNEXPECTED_EVENT
    )
    marks = [
        verdict(event, outcome, now, instance, error=reason),
        incidents.resolved("seen again", now, event_id=event.pk),
        incidents.opened(kind, reason, now, instance=instance, event_id=event.pk),
    ]
    _put_aside(event, instance, marks, now)


def _put_aside(
    event: InboxEvent, instance: ProcessInstance, marks: list[Statement], now: datetime
) -> None:
    """Settles an event that moves nothing; a process that was in trouble over it shows how it stands without it."""
    troubled = instance.finished_at is None and instance.status in TROUBLED
    if event.error and troubled:
        move = ProcessChange(
            instance, Cause.of(CauseKind.SETTLED, event.pk, instance.revision), now
        )
        move.mark(*marks)
        move.write()
    else:
        send(marks)
    announce_event(event)


def verdict(
    event: InboxEvent,
    outcome: Verdict,
    now: datetime,
    instance: ProcessInstance | None,
    **more: Any,
) -> Statement:
    """Settles a claimed event, if this worker still holds it."""
    values: dict[str, Any] = {
        "verdict": outcome,
        "handled_at": now,
        "wake_at": None,
        "owner": "",
        "error": "",
    }
    if instance is not None:
        values["process_id"] = instance.pk
    return events.update(
        {**values, **more},
        {
            "id": event.pk,
            "owner": event.owner,
            "attempt": event.attempt,
            "verdict": event.verdict,
        },
    )
