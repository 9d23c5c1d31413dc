"""The whole history of a process as JSON lines, the oldest transition first, read in parts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async

from monitoring.base.masking import command_body, event_body, names_of
from monitoring.process.history.checkpoints import (
    Checkpoints,
    causing_events,
    commands_of,
)
from monitoring.process.revision.entries import ShownCommand
from orchestrator.definition.secrets import mask_fields
from orchestrator.models import Checkpoint, Definition, InboxEvent, ProcessInstance

AT_ONCE = 500
"""The number of transitions that one statement reads, and that are in memory at one time."""


def history_lines(instance: ProcessInstance) -> Iterator[str]:
    """Yield the lines of all transitions until the call.

    Each part is a statement of its own, so that a reader that stops leaves no statement open.
    """
    for after in range(0, instance.revision, AT_ONCE):
        yield lines_after(instance, after)


async def history_lines_async(instance: ProcessInstance) -> AsyncIterator[str]:
    """Yield the lines of all transitions, for an asynchronous server."""
    for after in range(0, instance.revision, AT_ONCE):
        yield await sync_to_async(lines_after)(instance, after)


def lines_after(instance: ProcessInstance, revision: int) -> str:
    """Return the lines of the next transitions, each with a line feed at its end and with secrets masked."""
    last = min(revision + AT_ONCE, instance.revision)
    rows = instance.checkpoints.filter(revision__gt=revision, revision__lte=last)
    page = Checkpoints(list(rows.order_by("-revision")), [], newest=False)
    return "".join(
        json.dumps(line, ensure_ascii=False) + "\n"
        for line in reversed(json_transitions(instance, page))
    )


def json_transitions(
    instance: ProcessInstance, page: Checkpoints, *, sees: bool = True
) -> list[dict[str, Any]]:
    """Return the transitions of a page in its order, with the state of the process, the event and the commands.

    Args:
        instance: the process.
        page: some of its checkpoints.
        sees: whether the reader may see data; otherwise data, bodies and the traces of errors are left out.
    """
    events, commands = causing_events(instance, page), commands_of(instance, page)
    lines = (
        _line(
            one,
            instance.definition,
            events.get(one.revision),
            commands.get(one.revision, []),
        )
        for one in page.page
    )
    return [line if sees else _without_data(line) for line in lines]


def _line(
    checkpoint: Checkpoint,
    definition: Definition,
    event: InboxEvent | None,
    commands: list[ShownCommand],
) -> dict[str, Any]:
    return {
        "revision": checkpoint.revision,
        "at": checkpoint.at.isoformat(),
        "cause": checkpoint.cause,
        "status": checkpoint.status,
        "steps": checkpoint.steps,
        "edges": checkpoint.edge.split(",") if checkpoint.edge else [],
        "data": mask_fields(checkpoint.data, names_of(definition)),
        "event": _event(event, definition) if event is not None else None,
        "commands": [_command(command, definition) for command in commands],
    }


def _without_data(line: dict[str, Any]) -> dict[str, Any]:
    """Return a transition without data, and without the id of its event: senders may put data in the id."""
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


def _command(issued: ShownCommand, definition: Definition) -> dict[str, Any]:
    command = issued.command
    return {
        "id": str(command.pk),
        "type": command.type,
        "delivery": command.delivery,
        "status": command.status,
        "body": command_body(command, definition),
        "error": command.error,
    }
