"""The messages of one process: the newest rows of each table before a place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from monitoring.process.messages.message import (
    CHILDREN,
    COMMANDS,
    OUTSIDE,
    PARENT,
    FlowMessage,
    lane_of,
)
from monitoring.queries.processes import NOT_BY_INDEX
from orchestrator.models import (
    CommandStatus,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
)

READ = 100
"""The number of rows of each table that a page reads."""

LOOKED_AT = 1_000
"""The number of sub-processes that are searched for the newest ones."""

FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Bound:
    """The exclusive end of a page: an event, a transition and a moment."""

    event: int
    revision: int
    moment: datetime

    @classmethod
    def parse(cls, text: str) -> Bound | None:
        """Parse a place of an address; None for anything else, and for the newest page."""
        try:
            event, revision, moment = (int(part) for part in text.split("-"))
            at = datetime.fromtimestamp(moment / 1e6, UTC)
        except (ValueError, OverflowError, OSError):
            return None
        return cls(min(event, 2**63 - 1), min(revision, 2**31 - 1), at)

    def __str__(self) -> str:
        return f"{self.event}-{self.revision}-{round(self.moment.timestamp() * 1e6)}"


@dataclass(frozen=True)
class ReadMessages:
    """The messages that were read, and the moment since which they are complete."""

    messages: list[FlowMessage]
    whole_since: datetime = FIRST


def read_messages(process: ProcessInstance, before: Bound | None) -> ReadMessages:
    """Read the newest messages of a process."""
    parts = [_events(process, before), _commands(process, before)]
    if process.parent_id and (before is None or process.started_at < before.moment):
        here = lane_of(process.pk)
        parts.append(ReadMessages(list(_start_and_end(process, PARENT, here, before))))
    parts.append(_children(process, before))
    messages = [message for part in parts for message in part.messages]
    return ReadMessages(messages, max(part.whole_since for part in parts))


def _events(process: ProcessInstance, before: Bound | None) -> ReadMessages:
    rows = InboxEvent.objects.filter(process=process.pk).order_by("-id")
    if before is not None:
        rows = rows.filter(pk__lt=before.event)
    found = list(rows.defer("body", "body_hash")[: READ + 1])
    messages = [_event_message(event, process) for event in found[:READ]]
    return _read(messages, cut=len(found) > READ)


def _event_message(event: InboxEvent, process: ProcessInstance) -> FlowMessage:
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


def _commands(process: ProcessInstance, before: Bound | None) -> ReadMessages:
    rows = IssuedCommand.objects.filter(instance=process.pk).order_by("-revision")
    rows = rows.exclude(delivery=Delivery.REACTION)
    if before is not None:
        rows = rows.filter(revision__lt=before.revision)
    found = list(rows.defer("body")[: READ + 1])
    cut = found[READ].revision if len(found) > READ else None
    messages = [_command_message(command, process, cut) for command in found[:READ]]
    return _read(messages, cut=cut is not None)


def _read(messages: list[FlowMessage], *, cut: bool) -> ReadMessages:
    """Return the messages of one table, given newest first, in the order of storage."""
    found, latest = list[FlowMessage](), FIRST
    for message in reversed(messages):
        latest = max(latest, message.at)
        found.append(replace(message, place=latest))
    return ReadMessages(found, found[0].after if cut else FIRST)


def _command_message(
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


def _children(process: ProcessInstance, before: Bound | None) -> ReadMessages:
    children = ProcessInstance.objects.filter(parent=process.pk).newest_first()
    rows = ProcessInstance.objects.filter(pk__in=children.values("pk")[:LOOKED_AT])
    if before is not None:
        rows = rows.filter(started_at__lt=before.moment)
    found = list(rows.order_by(*NOT_BY_INDEX).defer("data")[: READ + 1])
    since = found[READ - 1].started_at if len(found) > READ else FIRST
    here = lane_of(process.pk)
    messages = [
        message
        for child in found[:READ]
        for message in _start_and_end(child, here, CHILDREN, before, of=process.pk)
    ]
    return ReadMessages(messages, since)


def _start_and_end(
    process: ProcessInstance,
    starter: str,
    started: str,
    before: Bound | None,
    of: UUID | None = None,
) -> Iterator[FlowMessage]:
    """Yield the start of a sub-process, and its end.

    Args:
        process: the sub-process.
        starter: the lane of its parent.
        started: its own lane.
        before: the end of the page.
        of: the parent, on the parent's page; None on the sub-process's own page.
    """
    owner, to = of or process.pk, process.pk if of else None
    begun, ended = process.started_at, process.finished_at
    name, status = process.name, process.status if of else "started"
    yield FlowMessage(begun, "start", name, starter, started, owner, status, to=to)
    if ended is not None and (before is None or ended < before.moment):
        sent = FlowMessage(ended, "end", name, started, starter, owner, process.status)
        yield replace(sent, took=ended - begun, to=to)
