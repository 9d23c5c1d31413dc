"""Events (facts, past tense) and commands (requests, imperative). The class statement makes them frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, dataclass_transform

from pydantic import ConfigDict

from orchestrator.definition.secrets import secret

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@dataclass_transform(frozen_default=True, field_specifiers=(field, secret))
class Message:
    """A message between processes and handlers. The name of its class is its type."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)


class Event(Message):
    """A fact that has happened. Name it in the past tense."""


class Command(Message):
    """A request to do something. Name it in the imperative."""
