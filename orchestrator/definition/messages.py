"""Events (facts, past tense) and commands (requests, imperative): frozen dataclasses by being declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, dataclass_transform

from pydantic import ConfigDict

from orchestrator.definition.secrets import secret

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@dataclass_transform(frozen_default=True, field_specifiers=(field, secret))
class Message:
    """What travels between processes and handlers. Its type is known by the name of its class."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)


class Event(Message):
    """A fact: something has happened. Declare it in the past tense."""


class Command(Message):
    """A request: something is to be done. Declare it in the imperative."""
