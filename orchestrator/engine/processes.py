"""The functions that applications call: starting processes, sending events, and finding the processes of an object.

They also work inside the caller's transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, overload
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import OperationalError, transaction
from django.db.models import Model, Q
from uuid6 import uuid7

from orchestrator import registry
from orchestrator.definition import Event, ProcessManager, Workflow
from orchestrator.engine.change.workflows import starting
from orchestrator.engine.storage import inbox, receipts
from orchestrator.engine.storage.inbox import Address
from orchestrator.engine.storage.receipts import TURNS, Arrival, Receipt, StartReceipt
from orchestrator.exceptions import (
    ConflictingEvent,
    EventRefused,
    InvalidMessage,
    ProcessionError,
)
from orchestrator.models import ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet
from orchestrator.registry import DefinitionClass


@overload
def start_process(
    definition: type[ProcessManager],
    event: Event,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt: ...


# Python's types cannot say that the second argument is an `Input` of the first one's class: a checker would settle on
# the common base of both. The type of the input is checked at run time.
@overload
def start_process(
    definition: type[Workflow] | str,
    event: object = None,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt: ...


def start_process(
    definition: DefinitionClass | str,
    event: Any = None,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt:
    """Start a process and make its process id.

    Args:
        definition: the process manager or workflow, or its name.
        event: one of a process manager's starting events, or a workflow's input; None for a workflow without `Input`.
        id: the event's or start's id, by which a repeat is recognised; the process id when empty.
        source: the sender.
        process_id: the process id, if the caller has made one.
        correlation_key: the business key; read from the event when empty.

    Returns:
        The receipt, with the process id. A process manager starts when a worker takes the event, a workflow at once.
        Two starts of a process manager with one key are both accepted while neither has started; the second then
        becomes an incident.

    Raises:
        KeyTaken: a live process of the definition has the correlation key, and this is no repeat of its start.
        UnknownDefinition, InvalidMessage, ConflictingEvent, InvalidDefinition: nothing is stored.
    """
    name = definition if isinstance(definition, str) else definition.name
    known = registry.find_definition(name)
    if issubclass(known, Workflow):
        return starting.start_workflow(
            known,
            event,
            id=id,
            source=source,
            process_id=process_id,
            correlation_key=correlation_key,
        )
    if type(event).__name__ not in known.starting_events():
        raise InvalidMessage(
            f"{type(event).__name__} does not start {name}; one of these does: "
            + ", ".join(sorted(known.starting_events()))
        )
    chosen = process_id or uuid7()
    id = id or str(chosen)
    key = correlation_key or inbox.correlation_of(known, event)
    receipt = inbox.receive(
        event,
        id=id,
        source=source,
        address=Address(chosen, key, target=name, starts=True),
    )
    if receipt.process_id is None:
        raise ConflictingEvent(
            f"{source} sent event id {id!r} before to whichever process has its key; use a new id for a new process"
        )
    return StartReceipt(
        receipt.number, receipt.process_id, receipt.verdict, receipt.repeated
    )


def send_event(
    event: Event | str,
    data: dict[str, Any] | None = None,
    *,
    id: str,
    source: str = "application",
    process_id: UUID | str | None = None,
    correlation_key: str = "",
) -> Receipt:
    """Send an event to its process. An event without a process is kept, and becomes an incident.

    Args:
        event: the event, or the name of its type.
        data: its fields as JSON values, when only the name is given.
        id: the sender's id of the event; the same id again gives the first receipt and changes nothing.
        source: the sender; ids are unique within a source.
        process_id: the process it is for. Without it the correlation key decides, given or read from the event. A
            starting event starts a process if no live process has its key.
        correlation_key: the business key.

    Raises:
        UnknownEventType: the running code has no event type of this name. Nothing is stored.
        InvalidMessage, ConflictingEvent: likewise nothing is stored.
    """
    envelope = Envelope(
        event=event,
        data=data,
        id=id,
        source=source,
        process_id=process_id,
        correlation_key=correlation_key,
    )
    return receipts.store_event(_arrival(envelope))


@dataclass(frozen=True)
class Envelope:
    """An event and its addressee: the parameters of `send_event`."""

    event: Event | str
    data: dict[str, Any] | None = None
    _: KW_ONLY
    id: str
    source: str = "application"
    process_id: UUID | str | None = None
    correlation_key: str = ""


def send_events(envelopes: Iterable[Envelope]) -> list[Receipt]:
    """Send many events in their order, hundreds by one statement and commit.

    Each event has the same outcome as with `send_event`. The events of one statement are stored together or not at
    all; inside the caller's transaction, all of them are part of it. After another error, such as a lost connection,
    send all events again: those that were stored are repeats, which change nothing.

    Args:
        envelopes: the events; a generator may make them one by one.

    Raises:
        EventRefused: `send_event` would have refused one of them; the error says why. Those before it are stored.
    """
    return _sent(envelopes, receipts.Storage())


async def astart_process(
    definition: DefinitionClass | str,
    event: Any = None,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt:
    """Start a process, for asynchronous code: as `start_process`, in Django's thread for the database.

    Django's transactions do not reach over it: start the process in a synchronous function that has the transaction.
    """
    about = {"id": id, "source": source, "process_id": process_id}
    start: Any = start_process  # of which an overload fits
    receipt: StartReceipt = await sync_to_async(start)(
        definition, event, correlation_key=correlation_key, **about
    )
    return receipt


async def asend_event(
    event: Event | str,
    data: dict[str, Any] | None = None,
    *,
    id: str,
    source: str = "application",
    process_id: UUID | str | None = None,
    correlation_key: str = "",
) -> Receipt:
    """Send an event to its process, for asynchronous code: as `send_event`, in Django's thread for the database."""
    return await sync_to_async(send_event)(
        event,
        data,
        id=id,
        source=source,
        process_id=process_id,
        correlation_key=correlation_key,
    )


async def asend_events(envelopes: Iterable[Envelope]) -> list[Receipt]:
    """Send many events in their order, for asynchronous code: as `send_events`, in Django's thread for the database."""
    return await sync_to_async(send_events)(envelopes)


def processes_of(obj: Model) -> ProcessInstanceQuerySet:
    """Return the processes of an object of the application, newest first.

    Their definitions name the object's model as their `subject`, and their correlation key is the object's value. A
    definition also has the objects of proxies of its model, and of models that inherit it. For a model that no
    definition names the result is empty, so that a page outlives the last definition.

    Args:
        obj: the object, as it is stored.

    Raises:
        TypeError: this is no object of a model.
        ValueError: the object is not stored. Its key may still change, so an empty result would be misleading.
    """
    if not isinstance(obj, Model):
        raise TypeError(f"processes_of takes an object of a model, not {obj!r}")
    if obj._state.adding or obj.pk is None:
        raise ValueError(f"{obj!r} is not stored, so it has no processes yet")
    names = defaultdict[str, list[str]](list)
    for name, subject in registry.subjects():
        if key := subject.key_of(obj):
            names[key].append(name)
    # The index of keys has this condition too.
    rows = ProcessInstance.objects.exclude(correlation_key="")
    rows = rows.filter(correlation_key__in=names)
    for key, some in names.items():
        # With a plain condition, the database may search all processes of a name.
        rows = rows.exclude(~Q(name__in=some), correlation_key=key)
    return rows.order_by("-pk")


def _sent(envelopes: Iterable[Envelope], storing: receipts.Storage) -> list[Receipt]:
    for envelope in envelopes:
        try:
            arrival = _arrival(envelope)
        except ProcessionError as error:
            storing.finish()
            raise EventRefused(storing.receipts, error) from error
        storing.add(arrival)
    storing.finish()
    return storing.receipts


def send_all_events(envelopes: Sequence[Envelope]) -> list[Receipt]:
    """Send many events in their order: all are stored, or none.

    After a deadlock with another sender of the same events, this function rolls back, waits for the other sender, and
    sends all events again. Call it outside a transaction: the locks of an open transaction would stay.

    Raises:
        EventRefused: `send_event` would have refused one of them; the error says why. None is stored.
    """
    turns = TURNS
    while True:
        storing = receipts.Storage(whole=True)
        try:
            with transaction.atomic():
                return _sent(envelopes, storing)
        except OperationalError as error:
            if not turns or not receipts.was_deadlock(error):
                raise
        for arrival in storing.arrivals:
            receipts.wait_for_others(arrival)
        turns -= 1


def _arrival(envelope: Envelope) -> Arrival:
    if not isinstance(envelope, Envelope):
        raise InvalidMessage(
            f"{type(envelope).__name__} is no Envelope: put each event into an Envelope, with its id"
        )
    event = envelope.event
    if isinstance(event, str):
        happened = inbox.parse_event(event, envelope.data or {})
    elif not envelope.data:
        happened = event
    else:
        raise InvalidMessage("data is for an event that is only named", "data")
    address = Address(_uuid(envelope.process_id), envelope.correlation_key)
    return inbox.arrival(happened, envelope.id, envelope.source, address)


def _uuid(value: UUID | str | None) -> UUID | None:
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise InvalidMessage("the process id must be a UUID", "process_id") from None
