"""All rows that the engine has written, as text that is the same each time: for a comparison with a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db.models import NOT_PROVIDED, Model

from orchestrator import queue
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time
from tests.apps.process_managers import desk

TABLES: dict[type[Model], str] = {
    ProcessInstance: "process",
    StepRun: "visit",
    InboxEvent: "event",
    IssuedCommand: "command",
    Checkpoint: "checkpoint",
    Incident: "incident",
}
"""The tables, with a word for a row of each."""
UNSTEADY = {"called", "detail", "fingerprint", "earlier", "place", "body_hash"}
"""Columns that change with the lines of the tests, or with random ids."""

UUIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
FLOATS = re.compile(r"[0-9]+\.[0-9]{3,}")
KEYS = re.compile(r"\b([a-z]+):([0-9]+)")


class WrittenText:
    """The text of all rows. Keys have short names, and of a time it is said whether it has come."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._now = database_now()

    def lines(self) -> Iterator[str]:
        """Yield a line for each row, with the columns that differ from their defaults."""
        for model in TABLES:
            # The keys of commands are random, and of one moment in any order.
            order = ["issued_at", "type", "pk"] if model is IssuedCommand else ["pk"]
            for row in model._default_manager.order_by(*order):
                yield " ".join([self._key(model, row.pk), *self._columns(row)])

    def _key(self, model: type[Model], pk: object) -> str:
        word = TABLES.get(model, "person")
        name = f"{word}{sum(one.startswith(word) for one in self._names.values()) + 1}"
        return self._names.setdefault(f"{word} {pk}", name)

    def _columns(self, row: Model) -> Iterator[str]:
        if isinstance(row, StepRun | Incident) and row.instance is not None:
            own = row.instance.definition_id
            element = isinstance(row, StepRun) and row.item is not None
            if row.stored_definition_id != (None if element else own):
                yield "stored_definition=wrong"
            start = None if element else row.instance.started_at
            if isinstance(row, StepRun) and row.process_started_at != start:
                yield "process_started_at=wrong"
        for field in row._meta.concrete_fields:
            value = getattr(row, field.attname)
            plain = "" if field.default is NOT_PROVIDED else field.get_default()
            if field.primary_key or field.name in UNSTEADY or value in (None, plain):
                continue
            about = str(getattr(row, "result", ""))
            if field.name == "checksum" and UUIDS.search(about):
                continue  # it is of a random id
            if field.related_model is Definition or field.name == "process_started_at":
                continue
            said = self._said(field, value)
            yield f"{field.name}={said}" if said else field.name

    def _said(self, field: Any, value: Any) -> str:
        if field.name == "checksum":
            return str(value)[:8]
        if isinstance(value, datetime):
            return "" if value <= self._now else "later"
        if isinstance(value, timedelta):
            return "some" if value else "none"
        if field.name == "owner":
            return "somebody"
        if field.remote_field is not None:
            return self._key(field.related_model, value)
        if isinstance(value, UUID):
            return self._named(str(value))
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        text = FLOATS.sub("some", text)
        text = UUIDS.sub(lambda found: self._named(found.group()), text)
        text = KEYS.sub(self._key_in_cause, text) if field.name == "cause" else text
        if field.name == "error":
            (*_, text) = text.strip().splitlines()  # without the traceback
        return json.dumps(text[:100]) if isinstance(value, str) else text[:100]

    def _key_in_cause(self, found: re.Match[str]) -> str:
        model = InboxEvent if "event" in found[1] else StepRun
        return f"{found[1]}:{self._key(model, int(found[2]))}"

    def _named(self, found: str) -> str:
        known = (self._names.get(f"{word} {found}") for word in TABLES.values())
        return next(filter(None, known), "another")


def differences(found: Collection[str], wanted: Collection[str]) -> list[str]:
    """Return the lines that are new, and those that are missing."""
    new = [f"+ {line}" for line in found if line not in wanted]
    return new + [f"- {line}" for line in wanted if line not in found]


FILE = Path(__file__).parent.parent / "data" / "written_rows.txt"
HEAD = "== "


def stored() -> dict[str, list[str]]:
    """The lines of the file by scenario."""
    found: dict[str, list[str]] = {}
    for line in FILE.read_text().splitlines():
        if line.startswith(HEAD):
            lines = found.setdefault(line.removeprefix(HEAD), [])
        else:
            lines.append(line)
    return found


@pytest.fixture
def bells(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queues of which a worker was woken, also by work that this process then runs itself."""
    monkeypatch.setattr(desk, "numbers", count(1))  # the ids of events
    rung: list[str] = []
    monkeypatch.setattr(
        queue, "_ring_script", lambda name, pid: lambda: rung.append(name)
    )
    return rung


def unlike_before(name: str, bells: list[str]) -> list[str]:
    """Return how what is stored, now and in 30 days, differs from the file; or write it there."""
    now = [*WrittenText().lines()]
    bells_now = f"bells {' '.join(sorted(bells))}"
    pass_time(timedelta(days=30))
    later = [line for line in WrittenText().lines() if line not in now]
    lines = [*now, bells_now, "in 30 days", *later]
    known = stored()
    if os.environ.get("PROCESSION_WRITE_ROWS"):
        known[name] = lines
        texts = (f"{HEAD}{one}\n" + "\n".join(known[one]) for one in sorted(known))
        FILE.write_text("\n".join(texts) + "\n")
    return differences(lines, known.get(name, []))
