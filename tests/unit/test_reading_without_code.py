"""Types of which reading a value runs no code of the application."""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID, uuid4

import pytest

from orchestrator.definition import Event
from orchestrator.definition.codec.own_code import runs_code


@dataclass(frozen=True)
class Plain:
    number: int
    parts: list["Plain"] = field(default_factory=list)
    price: Decimal | None = None


@dataclass
class Checked:
    number: int

    def __post_init__(self) -> None: ...


@dataclass
class Holding:
    inner: dict[str, tuple[Checked, ...]]


@dataclass
class Numbered:
    id: UUID = field(default_factory=uuid4)


@dataclass(init=False)
class Made:
    number: int

    def __init__(self, number: int) -> None:
        self.number = number


class Kind(Enum):
    ONE = "one"


class Guessing(Enum):
    ONE = "one"

    @classmethod
    def _missing_(cls, value: object) -> "Guessing":
        return cls.ONE


class Told(Event):
    number: int


class Converted(Event, from_older=lambda body: body):
    number: int


@pytest.mark.parametrize("form", [Plain, Told, list[Plain], int | str, Any, dict, Kind])
def test_plain_types_run_none(form: Any) -> None:
    assert not runs_code(form)


@pytest.mark.parametrize(
    "form", [Checked, Holding, Numbered, Made, Guessing, Converted]
)
def test_types_with_code_of_their_own_may_run_some(form: Any) -> None:
    assert runs_code(form)
