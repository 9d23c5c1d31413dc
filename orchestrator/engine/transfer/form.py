"""The form of an export: lines of JSON, each a row of a table, between a head and an end.

The head has the time of the export, the end the number of lines and their checksum. A row has the columns of its table
under their names, so that a new column is exported at once. Keys that are valid in one installation only are replaced:
a definition's by its name, version, kind and fingerprint, a user's by the user name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

from django.db.models import Field, JSONField, Model
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    IPvAnyAddress,
    StringConstraints,
    create_model,
)
from pydantic import Field as Bounds

from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)

KIND = "a process and its history"
FORMAT = 1
"""The number of the form. A release that changes the meaning of a line increases it."""

ADDED = frozenset({"extended", "text"})
"""Columns of later releases. Exports of earlier releases lack them."""

STRICT = ConfigDict(strict=True, extra="forbid")


class Head(BaseModel):
    """The first line."""

    model_config = STRICT

    procession: Literal["a process and its history"]
    format: int
    exported_at: AwareDatetime
    process: UUID
    processes: int


class End(BaseModel):
    """The last line."""

    model_config = STRICT

    end: Annotated[int, Bounds(ge=0)]
    sha256: str


class PinnedDefinition(BaseModel):
    """The definition of a process."""

    model_config = STRICT

    name: Annotated[str, StringConstraints(max_length=100)]
    version: Annotated[int, Bounds(ge=0, le=2**31 - 1)]
    kind: str
    fingerprint: str


LONGEST = timedelta(days=36_525)
"""The longest duration. Every database can store it."""

WHOLE = {
    "BigAutoField": 2**63 - 1,
    "AutoField": 2**63 - 1,
    "PositiveIntegerField": 2**31 - 1,
    "PositiveSmallIntegerField": 2**15 - 1,
}
OTHERS: dict[str, Any] = {
    "UUIDField": UUID,
    "BooleanField": bool,
    "TextField": str,
    "JSONField": Any,
    "DateTimeField": Annotated[
        AwareDatetime,
        Bounds(ge=datetime.fromisoformat("1970-01-01T00:00Z")),
        Bounds(le=datetime.fromisoformat("9000-01-01T00:00Z")),
    ],
    "DurationField": Annotated[timedelta, Bounds(ge=-LONGEST, le=LONGEST)],
    "GenericIPAddressField": IPvAnyAddress,
}


def _type_of(field: Field[Any, Any]) -> Any:
    """Return the type of a column's values in JSON."""
    if field.is_relation:
        target: Any = field.target_field  # type: ignore[attr-defined]  # a foreign key has it
        form = _type_of(target)
    elif field.choices:
        values = [value for value, _ in field.flatchoices]
        form = Literal[(*values, *([""] if field.blank else []))]
    elif (kind := field.get_internal_type()) in WHOLE:
        form = Annotated[int, Bounds(ge=0, le=WHOLE[kind])]
    elif kind in ("CharField", "SlugField"):
        form = Annotated[str, StringConstraints(max_length=field.max_length)]
    else:
        form = OTHERS[kind]
    return Optional[form] if field.null else form  # noqa: UP045  # made at run time


@dataclass(frozen=True)
class ExportedTable:
    """The rows of one table.

    Args:
        name: the name of their lines.
        model: the table.
        process: its column with the process id.
        left: columns that are not exported.
        beside: the names and types of the values that replace them.
        stray: whether a row may belong to no process.
    """

    name: str
    model: type[Model]
    process: str = "instance_id"
    left: frozenset[str] = frozenset()
    beside: tuple[tuple[str, Any], ...] = ()
    stray: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        fields = self.model._meta.concrete_fields
        return tuple(one.attname for one in fields if one.attname not in self.left)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The columns with JSON values of the application."""
        fields = self.model._meta.concrete_fields
        return tuple(one.attname for one in fields if isinstance(one, JSONField))

    @cached_property
    def form(self) -> type[BaseModel]:
        """The model that reads a line."""
        fields = {one.attname: one for one in self.model._meta.concrete_fields}
        types: dict[str, Any] = {
            name: (_type_of(fields[name]), None if name in ADDED else ...)
            for name in self.columns
        }
        besides = {name: (form, ...) for name, form in self.beside}
        made: Any = {"row": (Literal[self.name], ...), **types, **besides}
        form: type[BaseModel] = create_model(self.name, __config__=STRICT, **made)
        return form


USER = Annotated[str, StringConstraints(max_length=254)]

PARTS = (
    ExportedTable(
        "process",
        ProcessInstance,
        "id",
        frozenset({"definition_id", "owner_id"}),
        (("definition", PinnedDefinition), ("owner", Optional[USER])),  # noqa: UP045
    ),
    ExportedTable("command", IssuedCommand, left=frozenset({"line"})),
    ExportedTable("event", InboxEvent, "process_id"),
    ExportedTable(
        "visit",
        StepRun,
        left=frozenset({"definition", "stored_definition_id", "process_started_at"}),
    ),
    ExportedTable(
        "action", OperatorAction, left=frozenset({"actor_id", "bulk_id"}), stray=True
    ),
    ExportedTable(
        "incident",
        Incident,
        left=frozenset({"earlier", "stored_definition_id"}),
        stray=True,
    ),
    ExportedTable("checkpoint", Checkpoint),
)
"""The tables in the order of their lines: a row comes after the rows that it names, except a visit's sub-process."""

BY_NAME: Mapping[str, ExportedTable] = {part.name: part for part in PARTS}
