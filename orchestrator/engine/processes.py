"""Starting processes and sending events: what applications call. Safe inside the caller's own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, overload
from uuid import UUID

from django.db import OperationalError, transaction
from uuid6 import uuid7

from orchestrator import registry
from orchestrator.definition import Event, ProcessManager, Workflow
from orchestrator.engine import inbox
from orchestrator.engine.change import starting
from orchestrator.engine.inbox import Address
from orchestrator.engine.storage import receipts
from orchestrator.engine.storage.receipts import TURNS, Arrival, Receipt, StartReceipt
from orchestrator.exceptions import (
    ConflictingEvent,
    EventRefused,
    InvalidMessage,
    ProcessionError,
)
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


# Which class is a workflow's Input cannot be said of the second argument: Python's types have no words for an
# attribute of the first one's class, and a checker would settle on what both have in common. It is checked at run time.
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
    """Starts a process and makes its process id.

    Args:
        definition: the process manager or workflow, or its name.
        event: one of a process manager's starting events, or the input of a workflow; none of one without an `Input`.
        id: the event's or start's id, for repeats to be recognised; the process id when empty.
        source: who sends it.
        process_id: the process id to use, if the caller has made one.
        correlation_key: the business key; read from the event when empty.

    Returns:
        The receipt, with the process id. A process manager starts when a worker takes the event, a workflow at once.
        Of two process managers' starts with one key that were both accepted, because neither had started yet, the
        second is shown to people as an incident.

    Raises:
        KeyTaken: a live process of the definition has the correlation key, and this is no repeat of its start.
        UnknownDefinition, InvalidMessage, ConflictingEvent, InvalidDefinition: nothing is stored.
    """
    name = definition if isinstance(definition, str) else definition.name
    known = registry.find_definition(name)
    if issubclass(known, Workflow):
        return starting.start(
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
    key = correlation_key or inbox.key_of(known, event)
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
    """Sends an event to its process. An event without a process is kept, and shown to people.

    Args:
        event: the event, or the name of its type.
        data: its fields as JSON values, when only the name is given.
        id: the sender's id of the event; the same id again gives the first receipt and changes nothing.
        source: who sends it; ids are unique within a source.
        process_id: the process it is for. Without it the correlation key decides, given or read from the event, and a
            starting event whose key no live process has starts one.
        correlation_key: the business key.

    Raises:
        UnknownEventType: nothing knows the type of this name, so its fields cannot be read.
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
    return receipts.store(_arrival(envelope))


@dataclass(frozen=True)
class Envelope:
    """An event and whom it is for: what `send_event` is told of one."""

    event: Event | str
    data: dict[str, Any] | None = None
    _: KW_ONLY
    id: str
    source: str = "application"
    process_id: UUID | str | None = None
    correlation_key: str = ""


def send_events(envelopes: Iterable[Envelope]) -> list[Receipt]:
    """Sends many events in their order, hundreds by one statement and commit.

    What each of them comes to is what `send_event` would have made of it. Those of one statement are stored together or
    not at all; in the transaction of the caller, all of them are part of it. After an error that is none of theirs,
    such as a lost connection, send all of them again: those that were stored are repeats, which change nothing.

    Args:
        envelopes: the events; they may be made as they are asked for.

    Raises:
        EventRefused: one of them would have been refused, and says why: those before it are stored.
    """
    return _sent(envelopes, receipts.Storing())


def _sent(envelopes: Iterable[Envelope], storing: receipts.Storing) -> list[Receipt]:
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
    """Sends many events in their order: all are stored, or none.

    After a deadlock with another sender of the same events, this rolls back, waits for the other, and sends all events
    again. Call it outside a transaction: the locks of an open transaction would stay.

    Raises:
        EventRefused: one of them would have been refused, and says why: none is stored.
    """
    turns = TURNS
    while True:
        storing = receipts.Storing(whole=True)
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
        happened = inbox.read(event, envelope.data or {})
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
