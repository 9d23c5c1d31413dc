"""The messages of one process as its tables have them: the newest of each, before a place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from monitoring.queries.flow.message import (
    CHILDREN,
    COMMANDS,
    OUTSIDE,
    PARENT,
    FlowMessage,
    lane_of,
)
from orchestrator.models import (
    CommandStatus,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
)

READ = 100
"""Rows of each table that a page reads."""

LOOKED_AT = 1_000
"""Sub-processes among which the newest are looked for."""

FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Bound:
    """Before what a page ends: an event, a transition, and a moment."""

    event: int
    revision: int
    moment: datetime

    @classmethod
    def read(cls, text: str) -> Bound | None:
        """The place that an address names; None for the end."""
        try:
            event, revision, moment = (int(part) for part in text.split("-"))
            at = datetime.fromtimestamp(moment / 1e6, UTC)
        except (ValueError, OverflowError, OSError):
            return None
        return cls(min(event, 2**63 - 1), min(revision, 2**31 - 1), at)

    def __str__(self) -> str:
        return f"{self.event}-{self.revision}-{round(self.moment.timestamp() * 1e6)}"


@dataclass(frozen=True)
class Read:
    """What was read of one process, and since when it is all that there is."""

    messages: list[FlowMessage]
    whole_since: datetime = FIRST


def read(process: ProcessInstance, before: Bound | None) -> Read:
    """The newest messages of a process."""
    parts = [_events(process, before), _commands(process, before)]
    if before is None or process.started_at < before.moment:
        parts.append(Read(list(_own(process, before))))
    parts.append(_children(process, before))
    messages = [message for part in parts for message in part.messages]
    return Read(messages, max(part.whole_since for part in parts))


def _events(process: ProcessInstance, before: Bound | None) -> Read:
    rows = InboxEvent.objects.filter(process=process.pk).order_by("-id")
    if before is not None:
        rows = rows.filter(pk__lt=before.event)
    found = list(rows.defer("body", "body_hash")[: READ + 1])
    messages = [_arrived(event, process) for event in found[:READ]]
    return _read(messages, cut=len(found) > READ)


def _arrived(event: InboxEvent, process: ProcessInstance) -> FlowMessage:
    answered = event.caused_by_id is not None
    handled = event.handled_at
    return FlowMessage(
        event.received_at,
        "answer" if answered else "event",
        event.type,
        COMMANDS if answered else f"{OUTSIDE}{event.source}",
        lane_of(process.pk),
        process.pk,
        event.verdict,
        event.revision,
        handled - event.received_at if handled else None,
        event=event.pk,
        error=event.said,
    )


def _commands(process: ProcessInstance, before: Bound | None) -> Read:
    rows = IssuedCommand.objects.filter(instance=process.pk).order_by("-revision")
    rows = rows.exclude(delivery=Delivery.REACTION)
    if before is not None:
        rows = rows.filter(revision__lt=before.revision)
    found = list(rows.defer("body")[: READ + 1])
    cut = found[READ].revision if len(found) > READ else None
    messages = [_issued(command, process, cut) for command in found[:READ]]
    return _read(messages, cut=cut is not None)


def _read(messages: list[FlowMessage], *, cut: bool) -> Read:
    """What was read of one table, newest first, in the order in which it was stored."""
    found, latest = list[FlowMessage](), FIRST
    for message in reversed(messages):
        latest = max(latest, message.at)
        found.append(replace(message, place=latest))
    return Read(found, found[0].after if cut else FIRST)


def _issued(
    command: IssuedCommand, process: ProcessInstance, cut: int | None
) -> FlowMessage:
    ended = command.finished_at
    return FlowMessage(
        command.issued_at,
        "command",
        command.type,
        lane_of(process.pk),
        COMMANDS,
        process.pk,
        command.status,
        command.revision,
        ended - command.issued_at if ended else None,
        at_least=command.revision == cut,
        error=command.said if command.status == CommandStatus.FAILED else "",
    )


def _own(process: ProcessInstance, before: Bound | None) -> Iterator[FlowMessage]:
    """That it was started by another process, and told that one its end."""
    if process.parent_id is None:
        return
    here = lane_of(process.pk)
    yield FlowMessage(
        process.started_at, "start", process.name, PARENT, here, process.pk, "started"
    )
    yield from _ended(process, here, PARENT, before)


def _children(process: ProcessInstance, before: Bound | None) -> Read:
    keys = ProcessInstance.objects.filter(parent=process.pk).values("pk")[:LOOKED_AT]
    rows = ProcessInstance.objects.filter(pk__in=keys).order_by("-pk")
    if before is not None:
        rows = rows.filter(started_at__lt=before.moment)
    found = list(rows.defer("data")[: READ + 1])
    since = found[READ - 1].started_at if len(found) > READ else FIRST
    here, messages = lane_of(process.pk), []
    for child in found[:READ]:
        messages.append(
            FlowMessage(
                child.started_at,
                "start",
                child.name,
                here,
                CHILDREN,
                process.pk,
                child.status,
                to=child.pk,
            )
        )
        messages += _ended(child, CHILDREN, here, before, of=process.pk)
    return Read(messages, since)


def _ended(
    process: ProcessInstance,
    sender: str,
    receiver: str,
    before: Bound | None,
    of: UUID | None = None,
) -> Iterator[FlowMessage]:
    at = process.finished_at
    if at is None or (before is not None and at >= before.moment):
        return
    yield FlowMessage(
        at,
        "end",
        process.name,
        sender,
        receiver,
        of or process.pk,
        process.status,
        took=at - process.started_at,
        to=process.pk if of else None,
    )
