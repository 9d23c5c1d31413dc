"""The stored secrets of one process, in its data and its newest events, commands and results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from monitoring.base.masking import names_of
from monitoring.queries.processes import process_rows
from orchestrator import secret_names
from orchestrator.models import InboxEvent, IssuedCommand, ProcessInstance
from orchestrator.snapshot import snapshot

NEWEST = 30
"""The number of newest events, commands and results that are searched."""


@dataclass(frozen=True)
class SecretValue:
    """One secret: its place in a value, and its own value."""

    path: str
    value: Any

    @property
    def text(self) -> str:
        """The value as a text; JSON for any other value."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(self.value, ensure_ascii=False, indent=2)


@dataclass(frozen=True)
class SecretHolder:
    """The data, an event, a command or a result with secrets.

    Args:
        kind: data, event, command or result.
        name: its name; "" for the data.
        at: its time.
        secrets: the secrets in it.
    """

    kind: str
    name: str
    at: datetime | None
    secrets: list[SecretValue]


def secrets_of_process(pk: UUID) -> list[SecretHolder]:
    """Read all secrets of a process: its data first, then the newest of each kind."""
    with snapshot():
        instance = process_rows().get(pk=pk)
        return [one for one in _holders(instance) if one.secrets]


def _holders(instance: ProcessInstance) -> Iterator[SecretHolder]:
    names = names_of(instance.definition)
    yield SecretHolder("data", "", None, list(secrets_in(instance.data, names)))
    for event in instance.events.order_by("-pk")[:NEWEST]:
        found = list(secrets_in(*_read(event, names, of_command=False)))
        yield SecretHolder("event", event.type, event.received_at, found)
    for command in instance.commands.order_by("-revision", "-pk")[:NEWEST]:
        found = list(secrets_in(*_read(command, names, of_command=True)))
        yield SecretHolder("command", command.type, command.issued_at, found)
    runs = instance.step_runs.exclude(result=None).order_by("-pk")
    for run in runs[:NEWEST]:
        found = list(secrets_in(run.result, names))
        yield SecretHolder("result", run.node, run.finished_at, found)


def _read(
    row: InboxEvent | IssuedCommand, names: frozenset[str], *, of_command: bool
) -> tuple[Any, frozenset[str]]:
    """Return the body of a message in today's form, if the code can read it, and its secret fields."""
    body, own = secret_names.shown_message(row.type, row.body, of_command=of_command)
    return body, names | own


def secrets_in(
    value: Any, names: frozenset[str], path: str = ""
) -> Iterator[SecretValue]:
    """Yield the secrets in JSON values, each with its place."""
    parts: Any = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for name, item in parts:
        place = f"{path}.{name}" if path else str(name)
        if isinstance(name, str) and name in names:
            yield SecretValue(place, item)
        else:
            yield from secrets_in(item, names, place)
