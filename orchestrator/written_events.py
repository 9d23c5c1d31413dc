"""Events as other systems write them: JSON objects of one form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from pydantic import ConfigDict

from orchestrator.definition.codec import decode
from orchestrator.definition.messages import STRICT
from orchestrator.engine.processes import Envelope
from orchestrator.exceptions import InvalidMessage

FORM = "type, data and, if known, process_id or correlation_key"


@dataclass(frozen=True, kw_only=True)
class WrittenEvent:
    """An event and whom it is for: one process, or whichever has the correlation key, or none yet."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    type: str
    process_id: UUID | None = None
    correlation_key: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def envelope(self, id: str, source: str) -> Envelope:
        """As it is sent."""
        return Envelope(
            self.type,
            self.data,
            id=id,
            source=source,
            process_id=self.process_id,
            correlation_key=self.correlation_key,
        )


@dataclass(frozen=True, kw_only=True)
class WrittenWithId(WrittenEvent):
    """One of several: its own id tells it apart."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    id: str


W = TypeVar("W", bound=WrittenEvent)


def read_alone(content: object, id: str, source: str) -> Envelope:
    """An event that came alone, under an id that does not stand in it.

    Raises:
        InvalidMessage: it has another form.
    """
    return _read(WrittenEvent, content, FORM).envelope(id, source)


def read_of_many(content: object, source: str) -> Envelope:
    """One of several events.

    Raises:
        InvalidMessage: it has another form.
    """
    found = _read(WrittenWithId, content, f"id, {FORM}")
    return found.envelope(found.id, source)


def _read(form: type[W], content: object, wanted: str) -> W:
    try:
        return decode(form, content)
    except InvalidMessage as error:
        raise InvalidMessage(f"{error}; send an object with {wanted}") from None
