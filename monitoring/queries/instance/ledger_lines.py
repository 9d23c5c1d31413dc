"""The whole ledger of a process as JSON lines, the oldest transition first, read a little at a time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async

from monitoring.masking import command_body, event_body, masked, names_of
from monitoring.queries.instance.entries import Issued
from monitoring.queries.instance.history import Checkpoints, commands_of, events_of
from orchestrator.models import Checkpoint, Definition, InboxEvent, ProcessInstance

AT_ONCE = 500
"""Transitions that are read by one statement, and that are in memory at one time."""


def ledger_lines(instance: ProcessInstance) -> Iterator[str]:
    """All transitions that the process has had when this is called, a line each.

    Each part is a statement of its own: whoever stops reading leaves nothing open in the database.
    """
    for after in range(0, instance.revision, AT_ONCE):
        yield lines_after(instance, after)


async def ledger_lines_async(instance: ProcessInstance) -> AsyncIterator[str]:
    """The same for a server that awaits."""
    for after in range(0, instance.revision, AT_ONCE):
        yield await sync_to_async(lines_after)(instance, after)


def lines_after(instance: ProcessInstance, revision: int) -> str:
    """The lines of the next transitions, each with a line feed at its end; what is secret is masked in them."""
    definition = instance.definition
    last = min(revision + AT_ONCE, instance.revision)
    rows = instance.checkpoints.filter(revision__gt=revision, revision__lte=last)
    page = Checkpoints(list(rows.order_by("-revision")), [], newest=False)
    events, commands = events_of(instance, page), commands_of(instance, page)
    return "".join(
        json.dumps(
            _line(
                one,
                events.get(one.revision),
                commands.get(one.revision, []),
                definition,
            ),
            ensure_ascii=False,
        )
        + "\n"
        for one in reversed(page.page)
    )


def _line(
    checkpoint: Checkpoint,
    event: InboxEvent | None,
    commands: list[Issued],
    definition: Definition,
) -> dict[str, Any]:
    """One transition: what arrived, what the process was then, what was issued."""
    return {
        "revision": checkpoint.revision,
        "at": checkpoint.at.isoformat(),
        "cause": checkpoint.cause,
        "status": checkpoint.status,
        "steps": checkpoint.steps,
        "edges": checkpoint.edge.split(",") if checkpoint.edge else [],
        "data": masked(checkpoint.data, names_of(definition)),
        "event": _event(event, definition) if event is not None else None,
        "commands": [_command(one, definition) for one in commands],
    }


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
