"""Events from other systems: JSON objects of one form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from pydantic import ConfigDict

from orchestrator.definition.codec import decode
from orchestrator.definition.messages import STRICT
from orchestrator.engine.processes.events import Envelope
from orchestrator.exceptions import InvalidMessage

FORM = "type, data and, if known, process_id or correlation_key"


@dataclass(frozen=True, kw_only=True)
class JsonEvent:
    """An event with its process: by id, by correlation key, or not known yet."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    type: str
    process_id: UUID | None = None
    correlation_key: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def envelope(self, id: str, source: str) -> Envelope:
        """Return it as an envelope."""
        return Envelope(
            self.type,
            self.data,
            id=id,
            source=source,
            process_id=self.process_id,
            correlation_key=self.correlation_key,
        )


@dataclass(frozen=True, kw_only=True)
class JsonEventWithId(JsonEvent):
    """One of several events, with an id of its own."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    id: str


W = TypeVar("W", bound=JsonEvent)


def read_single_event(content: object, id: str, source: str) -> Envelope:
    """Read an event that came alone, with an id from outside the JSON.

    Raises:
        InvalidMessage: it has another form.
    """
    return _read(JsonEvent, content, FORM).envelope(id, source)


def read_listed_event(content: object, source: str) -> Envelope:
    """Read one of several events.

    Raises:
        InvalidMessage: it has another form.
    """
    found = _read(JsonEventWithId, content, f"id, {FORM}")
    return found.envelope(found.id, source)


def _read(form: type[W], content: object, wanted: str) -> W:
    try:
        return decode(form, content)
    except InvalidMessage as error:
        raise InvalidMessage(f"{error}; send an object with {wanted}") from None
