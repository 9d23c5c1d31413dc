"""Copied, filled and bound values fit their types. The declaration compares whole structures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import (
    Any,
    Generic,
    Literal,
    NewType,
    NotRequired,
    Protocol,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import pytest

from orchestrator.definition import Command, Event, ProcessManager, during, stored, when
from orchestrator.definition.annotations import agree
from orchestrator.exceptions import InvalidDefinition
from tests.services.cases import cases

T = TypeVar("T")


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True)
class Place:
    town: str


@dataclass(frozen=True)
class Shelf(Place):
    number: int


@dataclass(frozen=True)
class Box(Generic[T]):
    content: T


class Known(TypedDict):
    name: str


class More(Known):
    age: int


class Perhaps(TypedDict):
    name: NotRequired[str]


class Other(TypedDict):
    name: int


class Named(Protocol):
    content: int


Ticket = NewType("Ticket", str)


@cases(
    "given, fits, misfits",
    (int, [int, int | None, float], [str]),
    (int | None, [], [int]),
    (None, [int | None], []),
    (int | str, [], [float | bytes]),
    (str | None, [], [int, int | None]),
    (bool, [int], [Literal[True] | None, Literal[True]]),
    (list[int], [list[int], list[int | None], Sequence[int], list], [list[str]]),
    (list[int], [], [Sequence[str], tuple[int, ...]]),
    (list[str], [], [list[int]]),
    (list[int | None], [], [list[int]]),
    (list[list[str]], [], [list[list[int]]]),
    (list, [list[int]], []),
    (list[Shelf], [list[Place]], []),
    (dict[str, list[int]], [], [dict[str, list[str]]]),
    (dict[str, int], [Mapping[str, int]], [dict[str, str]]),
    (dict[str, Any], [dict[str, int]], []),
    (dict[str, Literal["a", 1]], [dict[str, str | int]], []),
    (tuple[int, str], [], [tuple[int, int], tuple[int, ...]]),
    (tuple[int, int], [tuple[int, ...], Sequence[int]], []),
    (tuple[int, ...], [], [tuple[int, int]]),
    (frozenset[Size], [frozenset[str]], []),
    (frozenset[str], [], [frozenset[Size], set[str]]),
    (Size, [str, Literal[Size.SMALL] | Literal[Size.LARGE]], [int]),
    (Size, [], [Literal[Size.SMALL]]),
    (str, [], [Size, Literal["a"]]),
    (Literal[Size.SMALL], [Size], []),
    (Literal["a"], [Literal["a", "b"]], [Literal["b"], int]),
    (Literal["a", "b"], [str], [Literal["a"], Literal["b", "c"]]),
    (Literal["a", None], [], [str]),
    (Literal["a", 1], [str | int], []),
    (Literal[1], [int | None], []),
    (Shelf, [Place], []),
    (Place, [], [Shelf, Box[int]]),
    (Box[int], [Box[int], Any, object, Named], [Box[str]]),
    (Box[int | None], [], [Box[int]]),
    (Known, [Known, Perhaps, dict[str, str]], [More, Other]),
    (More, [], [Known, dict[str, str]]),
    (Perhaps, [], [Known]),
    (dict[str, str], [], [Known]),
    (Ticket, [str], [int]),
    (UUID, [], [str]),
    (datetime, [], [date]),
    (float, [], [int]),
)
def test_structures_agree(given: Any, fits: list[Any], misfits: list[Any]) -> None:
    assert [one for one in fits if not agree(given, one)] == []
    assert [one for one in misfits if agree(given, one)] == []


# Of a process manager


def machine(
    given: Any, data: Any, wanted: Any, *, default: Any = None, **guards: Any
) -> type[ProcessManager]:
    """A process whose event has a field of one annotation, its data of another, and its command of a third."""

    class Begun(Event):
        pass

    class Told(Event):
        __annotations__ = {"value": given}

    class Tell(Command):
        __annotations__ = {"value": wanted}

    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"
        DONE = "Done"

    @dataclass(frozen=True)
    class Data:
        __annotations__ = {"value": data}
        value = default

    told = when(Told, **guards).issue(Tell).go_to(Step.DONE)
    rows = during(Step.NEW, when(Begun).go_to(Step.OPEN)), during(Step.OPEN, told)
    body = {"Step": Step, "Data": Data, "transitions": rows}
    return type("Telling", (ProcessManager,), body)


UNFIT = [(int | None, int), (list[str], list[int]), (Place, Shelf)]


@cases("given, data", *UNFIT, (str, Literal["a"]))
def test_what_is_copied_fits(given: Any, data: Any) -> None:
    with pytest.raises(InvalidDefinition, match="the event's 'value' does not fit"):
        machine(given, data, Any)


@cases("data, wanted", *UNFIT)
def test_what_fills_a_command_fits(data: Any, wanted: Any) -> None:
    with pytest.raises(InvalidDefinition, match=r"'value' does not fit Tell\.value"):
        machine(data, data, wanted)


def test_what_was_just_copied_is_known_better_than_the_data() -> None:
    assert machine(int, int | None, int)


def test_a_text_is_no_member_of_an_enumeration() -> None:
    with pytest.raises(InvalidDefinition, match="does not fit"):
        machine(str, Size, Size, default=Size.SMALL)


def test_what_equals_a_stored_field_has_its_type() -> None:
    assert machine(int | None, int, int, default=1, value=stored("value"))
