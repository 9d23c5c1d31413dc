"""The whole ledger of a process as JSON lines, the oldest transition first, read a little at a time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async

from monitoring.masking import command_body, event_body, names_of
from monitoring.queries.instance.checkpoints import (
    Checkpoints,
    commands_of,
    events_of,
)
from monitoring.queries.instance.entries import Issued
from orchestrator.definition.secrets import masked
from orchestrator.models import Definition, InboxEvent, ProcessInstance

AT_ONCE = 500
"""Transitions that one statement reads, and that are in memory at one time."""


def ledger_lines(instance: ProcessInstance) -> Iterator[str]:
    """All transitions of the process until the call, a line each.

    Each part is a statement of its own: a reader that stops leaves nothing open in the database.
    """
    for after in range(0, instance.revision, AT_ONCE):
        yield lines_after(instance, after)


async def ledger_lines_async(instance: ProcessInstance) -> AsyncIterator[str]:
    """The same for an asynchronous server."""
    for after in range(0, instance.revision, AT_ONCE):
        yield await sync_to_async(lines_after)(instance, after)


def lines_after(instance: ProcessInstance, revision: int) -> str:
    """The lines of the next transitions, each with a line feed at its end and with secrets masked."""
    last = min(revision + AT_ONCE, instance.revision)
    rows = instance.checkpoints.filter(revision__gt=revision, revision__lte=last)
    page = Checkpoints(list(rows.order_by("-revision")), [], newest=False)
    return "".join(
        json.dumps(line, ensure_ascii=False) + "\n"
        for line in reversed(lines_of(instance, page))
    )


def lines_of(
    instance: ProcessInstance, page: Checkpoints, *, sees: bool = True
) -> list[dict[str, Any]]:
    """The transitions of a page in its order: what arrived, how the process stood then, what was issued.

    Args:
        instance: the process.
        page: some of its checkpoints.
        sees: whether the reader may see data; if not, data and bodies are left out, and the traces of errors.
    """
    definition = instance.definition
    events, commands = events_of(instance, page), commands_of(instance, page)
    found = []
    for one in page.page:
        event, issued = events.get(one.revision), commands.get(one.revision, [])
        line = {
            "revision": one.revision,
            "at": one.at.isoformat(),
            "cause": one.cause,
            "status": one.status,
            "steps": one.steps,
            "edges": one.edge.split(",") if one.edge else [],
            "data": masked(one.data, names_of(definition)),
            "event": _event(event, definition) if event is not None else None,
            "commands": [_command(command, definition) for command in issued],
        }
        found.append(line if sees else _without_data(line))
    return found


def _without_data(line: dict[str, Any]) -> dict[str, Any]:
    """A transition without data. The id of an event is left out too: senders may put data in it."""
    event = line["event"] and {**line["event"], "id": None, "body": None}
    commands = [
        {**one, "body": None, "error": one["error"].strip().rpartition("\n")[2]}
        for one in line["commands"]
    ]
    return {**line, "data": None, "event": event, "commands": commands}


def _event(event: InboxEvent, definition: Definition) -> dict[str, Any]:
    return {
        "id": event.event_id,
        "source": event.source,
        "type": event.type,
        "received_at": event.received_at.isoformat(),
        "body": event_body(event, definition),
    }


def _command(issued: Issued, definition: Definition) -> dict[str, Any]:
    command = issued.command
    return {
        "id": str(command.pk),
        "type": command.type,
        "delivery": command.delivery,
        "status": command.status,
        "body": command_body(command, definition),
        "error": command.error,
    }
