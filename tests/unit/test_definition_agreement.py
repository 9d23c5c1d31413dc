"""What is copied, filled and bound by name fits: compared with all of its structure, when it is declared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar
from uuid import UUID

import pytest

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    during,
    stored,
    when,
)
from orchestrator.definition.typing import agree
from orchestrator.exceptions import InvalidDefinition

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


@pytest.mark.parametrize(
    ("given", "wanted", "fits"),
    [
        (int, int | None, True),
        (int | None, int, False),
        (None, int | None, True),
        (list[str], list[int], False),
        (list[int | None], list[int], False),
        (list[int], list[int | None], True),
        (list[list[str]], list[list[int]], False),
        (dict[str, list[int]], dict[str, list[str]], False),
        (dict[str, int], Mapping[str, int], True),
        (dict[str, Any], dict[str, int], True),
        (list, list[int], True),
        (tuple[int, str], tuple[int, int], False),
        (tuple[int, int], tuple[int, ...], True),
        (tuple[int, str], tuple[int, ...], False),
        (tuple[int, ...], tuple[int, int], False),
        (tuple[int, int], Sequence[int], True),
        (frozenset[Size], frozenset[str], True),
        (frozenset[str], frozenset[Size], False),
        (Size, str, True),
        (str, Size, False),
        (Size, Literal[Size.SMALL], False),
        (Literal[Size.SMALL], Size, True),
        (Literal["a"], Literal["a", "b"], True),
        (Literal["a", "b"], Literal["a"], False),
        (Literal["a", None], str, False),
        (Literal["a", 1], str | int, True),
        (Size, Literal[Size.SMALL] | Literal[Size.LARGE], True),
        (bool, Literal[True] | None, False),
        (dict[str, Literal["a", 1]], dict[str, str | int], True),
        (Literal[1], int | None, True),
        (bool, Literal[True], False),
        (str, Literal["a"], False),
        (Shelf, Place, True),
        (Place, Shelf, False),
        (Box[int], Box[int], True),
        (Box[int], Box[str], False),
        (Box[int | None], Box[int], False),
        (Known, Known, True),
        (More, Known, False),
        (Known, More, False),
        (Known, Other, False),
        (Perhaps, Known, False),
        (Known, Perhaps, True),
        (Known, dict[str, str], True),
        (More, dict[str, str], False),
        (dict[str, str], Known, False),
        (UUID, str, False),
        (datetime, date, False),
        (int, float, True),
        (float, int, False),
    ],
    ids=str,
)
def test_structures_are_compared(given: Any, wanted: Any, fits: bool) -> None:
    assert agree(given, wanted) is fits


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

    return type(
        "Telling",
        (ProcessManager,),
        {
            "Step": Step,
            "Data": Data,
            "transitions": (
                during(Step.NEW, when(Begun).go_to(Step.OPEN)),
                during(Step.OPEN, when(Told, **guards).issue(Tell).go_to(Step.DONE)),
            ),
        },
    )


@pytest.mark.parametrize(
    ("given", "data"),
    [(int | None, int), (list[str], list[int]), (str, Literal["a"]), (Place, Shelf)],
)
def test_what_is_copied_fits(given: Any, data: Any) -> None:
    with pytest.raises(InvalidDefinition, match="the event's 'value' does not fit"):
        machine(given, data, Any)


@pytest.mark.parametrize(
    ("data", "wanted"), [(int | None, int), (list[str], list[int]), (Place, Shelf)]
)
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
