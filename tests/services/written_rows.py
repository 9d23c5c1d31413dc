"""All rows that the engine has written, as text that is the same each time: for a comparison with a file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import NOT_PROVIDED, Model

from orchestrator.engine.sql.batch import database_now
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)

TABLES: tuple[type[Model], ...] = (
    *(ProcessInstance, StepRun, InboxEvent, IssuedCommand, Checkpoint, Incident),
)
UNSTEADY = {"definition", "called", "detail", "fingerprint", "earlier", "text"}
UNSTEADY |= {"checksum", "body_hash"}
"""Columns that change with the code of the tests, or with another column."""

UUIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
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
        word = f"{model._meta.model_name}"
        name = f"{word}{sum(one.startswith(word) for one in self._names.values()) + 1}"
        return self._names.setdefault(f"{word} {pk}", name)

    def _columns(self, row: Model) -> Iterator[str]:
        for field in row._meta.concrete_fields:
            value = getattr(row, field.attname)
            plain = "" if field.default is NOT_PROVIDED else field.get_default()
            if field.primary_key or field.name in UNSTEADY or value in (None, plain):
                continue
            yield f"{field.attname}={self._said(field, value)}"

    def _said(self, field: Any, value: Any) -> str:
        if isinstance(value, datetime):
            return "past" if value <= self._now else "later"
        if isinstance(value, timedelta):
            return "some" if value else "none"
        if field.name == "owner":
            return "somebody"
        if field.remote_field is not None:
            return self._key(field.related_model, value)
        if isinstance(value, UUID):
            return self._named(str(value))
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        text = UUIDS.sub(lambda found: self._named(found.group()), text)
        text = KEYS.sub(self._key_in_cause, text) if field.name == "cause" else text
        if field.name == "error":
            (*_, text) = text.strip().splitlines()  # without the traceback
        return json.dumps(text[:100]) if isinstance(value, str) else text[:100]

    def _key_in_cause(self, found: re.Match[str]) -> str:
        model = InboxEvent if "event" in found[1] else StepRun
        return f"{found[1]}:{self._key(model, int(found[2]))}"

    def _named(self, found: str) -> str:
        known = (
            self._names.get(f"{model._meta.model_name} {found}") for model in TABLES
        )
        return next(filter(None, known), "another")


def differences(found: Collection[str], wanted: Collection[str]) -> list[str]:
    """Return the lines that are new, and those that are missing."""
    new = [f"+ {line}" for line in found if line not in wanted]
    return new + [f"- {line}" for line in wanted if line not in found]
