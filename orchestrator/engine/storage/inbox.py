"""Receiving events: each is stored before anything else happens to it.

1. Read the body strictly. 2. Insert one row a target (the definitions that have rows for the type, or the one process
that the event names), with the commands of the simple event handlers. 3. Commit, in the caller's own transaction if
there is one. 4. Wake the queues. A repeat of source and event id changes nothing and gets the first receipt again.
"""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from orchestrator import registry
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event
from orchestrator.definition.codec import (
    digest,
    text_digest,
)
from orchestrator.definition.declarations.message_forms import (
    decode_message,
    encode_message,
)
from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.engine.sql.batch import Raw, RowReceiver, Statement, at_commit
from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.tables import BY_ID, BY_KEY, commands, events
from orchestrator.engine.storage import definitions, receipts, start_locks
from orchestrator.engine.storage.receipts import Arrival, Receipt
from orchestrator.engine.storage.repeats import content_of
from orchestrator.exceptions import InvalidMessage
from orchestrator.models import (
    CommandStatus,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Verdict,
)
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text, is_blank, steers


@dataclass(frozen=True)
class Address:
    """The addressee of an event: one process by its id, or the process that has the correlation key."""

    process_id: UUID | None = None
    correlation_key: str = ""
    target: str = ""
    starts: bool = False


def receive(event: Event, *, id: str, source: str, address: Address) -> Receipt:
    """Store an event and wake a worker that delivers it.

    Args:
        event: the event.
        id: the sender's own id of it, unique within the source.
        source: the sender.
        address: the addressee.

    Raises:
        InvalidMessage: the event cannot be stored, or id or source are empty or too long.
        ConflictingEvent: the id was used before for another event.
    """
    return receipts.store_event(arrival(event, id, source, address))


def arrival(event: Event, id: str, source: str, address: Address) -> Arrival:
    """Return the rows of an event, not yet stored.

    Raises:
        InvalidMessage: this is no event, it cannot be stored, or id or source are empty or too long.
    """
    if not isinstance(event, Event):
        raise InvalidMessage(
            "an event is an instance of a class of events, or the name of its class;"
            f" this is {reprlib.repr(event)}"
        )
    check_name("id", id, 200)
    check_name("source", source, 100)
    check_key(address.correlation_key)
    body, full = encode_message(event)
    # Each call makes the process id of a start anew, so the id cannot tell a repeat from another event.
    named = "" if address.starts else str(address.process_id or "")
    kind, key = type(event).__name__, address.correlation_key
    text = content_of(kind, full, named, key)
    rows = inbox_rows(event, body, id, source, address, text_digest(text), at_commit())
    addressee = str(address.process_id or address.correlation_key)
    return Arrival(rows, reactions_to(rows, addressee), len(text), named, key)


def inbox_rows(
    event: Event,
    body: dict[str, Any],
    id: str,
    source: str,
    address: Address,
    fingerprint: str,
    now: datetime,
) -> list[InboxEvent]:
    """Return the inbox rows of an event, not yet stored: one a target."""
    kind = type(event).__name__
    row = functools.partial(
        InboxEvent,
        source=source,
        event_id=id,
        type=kind,
        body=body,
        body_hash=fingerprint,
        process_id=address.process_id,
        starts=address.starts,
        received_at=now,
    )
    targets = [d for d in registry.receivers(kind) if address.target in ("", d.name)]
    if address.process_id is not None:
        queue = targets[0].queue if targets else DEFAULT_QUEUE
        key = address.correlation_key
        return [
            row(target=address.target, correlation_key=key, queue=queue, wake_at=now)
        ]
    if not targets:
        verdict = Verdict.REACTED if registry.reactions.get(kind) else Verdict.UNROUTED
        until = now + patience(None) if verdict == Verdict.UNROUTED else None
        return [
            row(verdict=verdict, handled_at=now, wake_at=until, patience_until=until)
        ]
    return [
        row(
            target=target.name,
            correlation_key=address.correlation_key or correlation_of(target, event),
            queue=target.queue,
            wake_at=now,
        )
        for target in targets
    ]


def correlation_of(target: DefinitionClass, message: object) -> str:
    """Return a definition's correlation key in an event or input; "" when the message carries none.

    Raises:
        InvalidMessage: the key is blank or too long, or has characters that steer what shows it.
    """
    key = target.correlation_key(message)
    field = target.correlation
    if isinstance(getattr(message, field or "-", None), str) and not key.strip():
        name = type(message).__name__
        raise InvalidMessage(
            Text(
                "the correlation key of %(name)s must not be empty in %(type)s",
                target.name,
                name,
            ),
            field,
        )
    check_name("correlation key", key, 200, empty=True)
    return key


def caused_rows(
    event: Event, process_id: UUID | None, command_id: UUID, number: int, now: datetime
) -> list[InboxEvent]:
    """Return the inbox rows of an event that a command's handler returned, not yet stored."""
    body, full = encode_message(event)
    address = Address(process_id=process_id)
    id = f"{command_id}:{number}"
    rows = inbox_rows(event, body, id, "command", address, digest(full), now)
    for row in rows:
        row.caused_by_id = command_id
    return rows


def follow_ups(
    instance: ProcessInstance | None,
    happened: Sequence[Event],
    command_id: UUID,
    now: datetime,
) -> list[InboxEvent]:
    """Return the inbox rows of a command's events: for the command's own process, if that has rows for them."""
    rows: list[InboxEvent] = []
    for number, event in enumerate(happened):
        process_id = None
        if instance is not None:
            takes = definitions.definition_of(instance).can_handle(event)
            process_id = instance.pk if takes else None
        rows += caused_rows(event, process_id, command_id, number, now)
    return rows


def event_inserts(rows: Sequence[InboxEvent]) -> list[Statement]:
    """Return the inserts of inbox rows, and of the commands for their simple event handlers: once for each event."""
    firsts: dict[str, InboxEvent] = {}
    for row in rows:
        firsts.setdefault(row.event_id, row)
    found = [command for row in firsts.values() for command in reactions_to([row])]
    receipts.put_in_order(found)
    stored = [commands.insert_if(found, ALL, [], len(found))] if found else []
    return [*events.inserts(rows), *stored]


def reactions_to(
    rows: Sequence[InboxEvent], addressee: str = ""
) -> list[IssuedCommand]:
    """Return the commands for an event's simple event handlers: one each, however many targets the event has.

    Args:
        rows: the event's rows.
        addressee: the process id or the key that its sender gave; "" for none.
    """
    first = rows[0]
    keys = (row.correlation_key for row in rows if row.correlation_key)
    return [
        IssuedCommand(
            id=uuid5(
                NAMESPACE_URL, f"{first.source}\n{first.event_id}\n{handler.name}"
            ),
            type=handler.name,
            body=first.body,
            delivery=Delivery.REACTION,
            status=CommandStatus.READY,
            line=addressee or str(first.process_id or next(keys, "")),
            queue=handler.queue,
            wake_at=first.received_at,
            issued_at=first.received_at,
        )
        for handler in registry.reactions.get(first.type, ())
    ]


def parse_event(kind: str, body: object) -> Event:
    """Return an event, made of its type's name and its JSON body.

    Raises:
        UnknownEventType: the running code has no such type.
        InvalidMessage: the body has neither the declared form nor an older one that its class converts.
    """
    return decode_message(registry.event_class(kind), body)


def early_events(
    instance: ProcessInstance,
    now: datetime,
    *,
    id_known: bool,
    receive: RowReceiver | None = None,
) -> list[Statement]:
    """Return the updates that make a process's early events due, in the order of their receipts.

    Args:
        instance: the process that starts.
        now: the database's time.
        id_known: whether a sender can have known the process id before.
        receive: called with the keys of early events, for each way to address the process.
    """
    again = {**offered_columns(now), "process_id": instance.pk}
    key, pk = instance.correlation_key, instance.pk if id_known else None
    found = start_locks.start_locks(pk, instance.name, key)
    addressed: list[dict[str, Any]] = [{"process_id": pk}] if id_known else []
    addressed += [{"target": instance.name, "correlation_key": key}] if key else []
    for address in addressed:
        unrouted = {**address, "verdict": Verdict.UNROUTED}
        made_due = events.update(again, unrouted, rows=None)
        found.append(made_due.returning("id", receive) if receive else made_due)
    return found


def release_claimed(instance: ProcessInstance, now: datetime) -> list[Statement]:
    """Return the updates that release the claimed events of a process uncharged, since older ones came to be due."""
    return release_line(instance.pk, instance.name, instance.correlation_key, now)


def release_line(
    process_id: UUID | None, name: str, key: str, now: datetime
) -> list[Statement]:
    """Return the updates that release the claimed events of an addressee uncharged, since older ones came to be due.

    Args:
        process_id: the process id; None for none.
        name: the definition's name.
        key: the correlation key; "" for none.
        now: the database's time.
    """
    free = {"owner": "", "wake_at": now, "attempt": Raw("attempt - 1")}
    lines = list[tuple[dict[str, Any], Condition]]()
    if process_id is not None:
        lines.append(({"process_id": process_id}, BY_ID))
    if key:
        lines.append(({"target": name, "correlation_key": key}, BY_KEY))
    return [
        events.update(
            free, line, None, Condition(f"{which.sql} AND NOT owner = ''", ())
        )
        for line, which in lines
    ]


def offered_columns(now: datetime) -> dict[str, Any]:
    """Return the columns of an event that is offered as if it had just arrived."""
    undecided = {"handled_at": None, "patience_until": None, "remaining": None}
    received = {"verdict": Verdict.RECEIVED, "wake_at": now}
    return {**received, **undecided, "attempt": 0, "owner": ""}


def patience(definition: DefinitionClass | None) -> timedelta:
    """Return how long an event is kept before people are told."""
    if definition is not None and definition.patience is not None:
        return definition.patience
    return timedelta(seconds=conf().PATIENCE_SECONDS)


def check_key(given: str) -> None:
    """Check a correlation key; "" stands for none.

    Raises:
        InvalidMessage: the key is blank or too long, or has characters that steer what shows it.
    """
    check_name("correlation key", given, 200, empty=True)


def check_name(what: str, value: str, longest: int, *, empty: bool = False) -> None:
    """Check a key, an id or the name of a source.

    Args:
        what: which of these, in words.
        value: the text.
        longest: characters that it may have.
        empty: whether "" is taken too.

    Raises:
        InvalidMessage: it is blank or too long, or has characters that steer what shows it.
    """
    if not isinstance(value, str) or (not value and not empty):  # type: ignore[redundant-expr]  # callers without types
        raise InvalidMessage(
            Text("the %(field)s must be a text that is not empty", what)
        )
    if len(value) > longest:
        raise InvalidMessage(
            Text("the %(field)s must have at most %(most)s characters", what, longest)
        )
    if value.isascii() and value.isprintable() and not value.isspace():
        return  # most of them
    if steers(value):
        raise InvalidMessage(
            Text(
                "the %(field)s must have no control characters, no lone surrogates, and no characters that end a line "
                "or change its direction",
                what,
                was="the %(field)s must have printable characters only",
            )
        )
    if value and is_blank(value):
        raise InvalidMessage(
            Text(
                "the %(field)s must not be blank",
                what,
                was="the correlation key must not be blank",
            )
        )
