"""The functions with which applications send events, also inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import OperationalError, transaction

from orchestrator.definition import Event
from orchestrator.engine.storage import inbox, receipts
from orchestrator.engine.storage.inbox import Address
from orchestrator.engine.storage.receipts import TURNS, Arrival, Receipt
from orchestrator.exceptions import EventRefused, InvalidMessage, ProcessionError


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
