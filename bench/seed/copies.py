"""Copies of a recorded process: its rows with ids, keys, moments and checksums of their own.

The rows of a recording become lines of PostgreSQL's COPY format, once, with a slot wherever a copy has something of
its own; filling the slots is all that is done a million times.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from django.core import serializers
from django.db import models
from django.db.models import Field, Model

from bench.seed.recording import Recording
from bench.seed.scenarios import KEY
from orchestrator.definition.codec import canonical_json, digest
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    StepStatus,
    command_id,
)
from orchestrator.models.cause import OF_STEP_RUNS
from orchestrator.models.work import Work

LATER = timedelta(days=30)
"""The earliest time of a copy's future moments: until then it has no work for workers."""

SPREAD_SECONDS = 300 * 86_400
"""The seconds after LATER over which these moments are spread."""

EXTENDED = timedelta(days=500)
"""The extension of the deadlines of copies, which began up to 90 days ago and wake after LATER."""

SLOWEST = 2_000
"""A scenario takes a moment; its copies take up to so many times as long."""


class Place(NamedTuple):
    """The place of a copy in time and in the tables.

    Args:
        number: the number of the copy, which its key and ids contain.
        end: the time of its last row.
        now: its future moments come after this.
        ids: its own ids in each table whose ids are numbers.
    """

    number: int
    end: datetime
    now: datetime
    ids: Mapping[type[Model], Sequence[int]]


def key_of(number: int) -> str:
    """Return the correlation key of a copy."""
    return f"{KEY[: KEY.index('?')]}{number:0{KEY.count('?')}}"


class Template:
    """A recording as a template for copies.

    Args:
        recording: the rows of a real run.
        definitions: the ids of the definitions in the filled database, by those recorded.
        vendor: the kind of that database.
    """

    def __init__(
        self, recording: Recording, definitions: Mapping[int, int], vendor: str
    ) -> None:
        self.share = recording.share
        self.vendor = vendor
        self._recorded = datetime.fromisoformat(recording.moment)
        self._definitions = definitions
        rows = [
            found.object for found in serializers.deserialize("json", recording.rows)
        ]
        self._rows = rows
        self._numbers = _numbered(rows)
        self.counts = {model: len(found) for model, found in self._numbers.items()}
        """How many ids a copy needs in each table."""
        self._ids = sorted(_uuids(rows), key=str)
        [process] = [row for row in rows if isinstance(row, ProcessInstance)]
        self._process = self._ids.index(process.pk)
        self._started = process.started_at
        self._made = [self._made_from(one) for one in self._ids]
        self._moments: dict[datetime, int] = {}
        # Also what has become due meanwhile, as on a busy machine the recording may be slower than a retry.
        self._to_come = {row.wake_at for row in rows if isinstance(row, Work)}
        self._sums: list[str] = []
        lines: dict[type[Model], list[str]] = defaultdict(list)
        for row in rows:
            values = [self._value(row, field) for field in row._meta.concrete_fields]
            lines[type(row)].append("\t".join(values))
        self._lines = {model: "\n".join(found) + "\n" for model, found in lines.items()}

    def copy(self, place: Place) -> dict[type[Model], str]:
        """Return the lines of a copy, by table."""
        slots: dict[str, Any] = {"key": key_of(place.number)}
        chance = Random(place.number)  # noqa: S311  no secret
        stretch = chance.uniform(1, SLOWEST)
        self._tell_times(slots, place, stretch, chance)
        started = place.end - (self._recorded - self._started) * stretch
        for number, new in enumerate(self._new_ids(started, place.number)):
            slots[f"u{number}"], slots[f"h{number}"] = str(new), new.hex
        for model, ids in place.ids.items():
            name = model._meta.model_name
            for number, one in enumerate(ids):
                slots[f"{name}{number}"] = one
        for number, text in enumerate(self._sums):
            whole = (text % slots).encode()
            slots[f"c{number}"] = hashlib.sha256(whole).hexdigest()
        return {model: text % slots for model, text in self._lines.items()}

    # Values of a copy's own

    def _tell_times(
        self, slots: dict[str, Any], place: Place, stretch: float, chance: Random
    ) -> None:
        zone = "+00:00" if self.vendor == "postgresql" else ""
        for moment, number in self._moments.items():
            if moment > self._recorded or moment in self._to_come:
                ahead = LATER + timedelta(seconds=chance.uniform(0, SPREAD_SECONDS))
                told = place.now + ahead
            else:
                told = place.end - (self._recorded - moment) * stretch
            slots[f"t{number}"] = f"{told:%Y-%m-%d %H:%M:%S.%f}{zone}"

    def _made_from(self, one: UUID) -> tuple[int, int] | None:
        """Return the revision and place of which the id of a command is made; None if it is made otherwise."""
        process = self._ids[self._process]
        for row in self._rows:
            if isinstance(row, IssuedCommand) and row.pk == one:
                for place in range(len(self._rows)):
                    if command_id(process, row.revision, place) == one:
                        return row.revision, place
        return None

    def _new_ids(self, started: datetime, number: int) -> list[UUID]:
        process = process_id(started, number)
        return [
            process
            if index == self._process
            else command_id(process, *made)
            if made is not None
            else uuid5(process, str(index))
            for index, made in enumerate(self._made)
        ]

    # Rows as lines

    def _value(self, row: Model, field: Field[Any, Any]) -> str:
        value = getattr(row, field.attname)
        if isinstance(row, StepRun):
            value = _of_visit(row, field.name, value)
        if value is None:
            return r"\N"
        if isinstance(field, models.ForeignKey):
            return self._reference(field, value)
        if field.primary_key and isinstance(value, int):
            return self._numbered_slot(type(row), value)
        if field.name in ("checksum", "body_hash") and value:
            return self._checksum(row, value)
        if isinstance(row, Checkpoint) and field.name == "cause":
            return self._cause(Cause.parse(value))
        return self._plain(field, value)

    def _plain(self, field: Field[Any, Any], value: Any) -> str:
        """Return a value in the form of its type."""
        match value:
            case datetime():
                number = self._moments.setdefault(value, len(self._moments))
                return f"%(t{number})s"
            case timedelta() if self.vendor != "postgresql":
                return str(value // timedelta(microseconds=1))
            case bool() if not isinstance(field, models.JSONField):
                return str(int(value))
            case UUID():
                return f"%(h{self._ids.index(value)})s"
        as_json = isinstance(field, models.JSONField)
        return self._text(json.dumps(value) if as_json else str(value))

    def _reference(self, field: models.ForeignKey[Any, Any], value: Any) -> str:
        target: Any = field.related_model
        if target._meta.model_name == "definition":
            return str(self._definitions[value])
        if isinstance(value, UUID):
            return f"%(h{self._ids.index(value)})s"
        return self._numbered_slot(target, value)

    def _numbered_slot(self, model: type[Model], value: int) -> str:
        return f"%({model._meta.model_name}{self._numbers[model].index(value)})s"

    def _cause(self, cause: Cause) -> str:
        """Return the cause of a transition, with the ids of the copy's own rows."""
        of_events = (CauseKind.EVENT, CauseKind.EVENT_FAILED)
        if cause.kind in (*OF_STEP_RUNS, *of_events):
            model = InboxEvent if cause.kind in of_events else StepRun
            slot = self._numbered_slot(model, int(cause.ref))
            return str(cause._replace(ref=slot))
        return self._text(str(cause))

    def _checksum(self, row: Any, known: str) -> str:
        """Return a checksum to compute from the copy's own values; other checksums stay."""
        for body in _sealed(row):
            if digest(body) == known:
                self._sums.append(self._slotted(canonical_json(body)))
                return f"%(c{len(self._sums) - 1})s"
        return known

    def _text(self, text: str) -> str:
        """Return a text in the form of COPY, with slots for the values of the process in it."""
        for char, written in ESCAPED:
            text = text.replace(char, written)
        return self._slotted(text)

    def _slotted(self, text: str) -> str:
        text = text.replace("%", "%%").replace(KEY, "%(key)s")
        for number, one in enumerate(self._ids):
            text = text.replace(str(one), f"%(u{number})s")
        return text


ESCAPED = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def _sealed(row: Any) -> Iterable[Any]:
    """Return the values of a row that a checksum may cover."""
    if isinstance(row, InboxEvent):
        for named in ("", str(row.process_id)):
            yield [row.type, row.body, named, row.correlation_key]
            yield [row.type, row.body, named, ""]
    else:
        yield row.data if isinstance(row, Checkpoint) else row.result


def _numbered(rows: Sequence[Model]) -> dict[type[Model], list[int]]:
    """Return the ids of rows that are numbers, by table, in order."""
    found: dict[type[Model], list[int]] = defaultdict(list)
    for row in rows:
        if isinstance(row.pk, int):
            found[type(row)].append(row.pk)
    return {model: sorted(numbers) for model, numbers in found.items()}


def _uuids(rows: Sequence[Model]) -> set[UUID]:
    """Return every UUID in a column."""
    values = (
        getattr(row, field.attname)
        for row in rows
        for field in row._meta.concrete_fields
    )
    return {value for value in values if isinstance(value, UUID)}


def process_id(started: datetime, number: int) -> UUID:
    """Return an id of version 7: the time in milliseconds, and the number of the copy as the random part."""
    milliseconds = int(started.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62 | number)


def _of_visit(row: StepRun, column: str, value: Any) -> Any:
    """Return the value that a copy of a visit has in a column.

    A copy has no worker, and its deadline is extended.
    """
    if column == "extended" and row.wake_at is not None:
        return EXTENDED
    if row.owner:
        return {"owner": "", "status": StepStatus.READY}.get(column, value)
    return value


def plain_value(value: str) -> str | None:
    """Return a value of a line as it is."""
    if value == r"\N":
        return None
    if "\\" not in value:
        return value
    named = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
    parts, escaped = [], False
    for char in value:
        if escaped:
            parts.append(named[char])
        elif char != "\\":
            parts.append(char)
        escaped = char == "\\" and not escaped
    return "".join(parts)
