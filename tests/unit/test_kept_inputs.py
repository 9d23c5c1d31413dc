"""An input is read once, and each step is given what no other step can change."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import uuid4

import pytest

from orchestrator.containers import LruCache
from orchestrator.definition.annotations import is_immutable
from orchestrator.definition.codec import encode
from orchestrator.engine.storage.definitions import Began, Input
from orchestrator.exceptions import InvalidMessage


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    name: str
    colours: frozenset[Colour] = frozenset()


@dataclass(frozen=True)
class Order:
    key: str
    parts: tuple[Part, ...]
    notes: list[Part]
    first: Part | None = None


@dataclass
class Loose:
    name: str


@dataclass(frozen=True)
class Sorted:
    names: list[str]
    count: int = field(default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", sorted(self.names))


ORDER = Order("O-1", (Part("bolt", frozenset({Colour.RED})),), [Part("nut")])


FIXED: list[Any] = [str, int | None, Literal["a", 1], Colour, Part, tuple[Part, ...]]
LOOSE: list[Any] = [Order, Loose, list[int], dict[str, int], tuple, Any, object]


def test_what_never_changes() -> None:
    fixed, loose = [*FIXED, frozenset[tuple[int, str]]], [*LOOSE, tuple[list[int], ...]]

    assert [one for one in fixed + loose if is_immutable(one)] == fixed


def test_what_cannot_be_changed_is_the_same_for_all() -> None:
    kept = Input(Order, encode(ORDER))

    assert kept.field("parts") is kept.field("parts")
    assert (kept.field("parts"), kept.field("first")) == (ORDER.parts, None)


def test_what_can_be_changed_is_everyones_own() -> None:
    kept = Input(Order, encode(ORDER))
    kept.field("notes").clear()
    kept.whole().notes.clear()

    assert kept.field("notes") == ORDER.notes
    assert kept.whole() == ORDER


def test_what_the_class_itself_makes_of_a_field_is_what_steps_are_given() -> None:
    kept = Input(Sorted, {"names": ["b", "a"], "count": 2})

    kept.field("names").append("c")
    assert kept.field("names") == ["a", "b"]


def test_a_field_that_was_not_there_yet_has_its_default() -> None:
    kept = Input(Sorted, {"names": []})

    assert (kept.field("count"), kept.field("names")) == (0, [])


def test_an_input_of_another_form_is_refused_whatever_is_asked_of_it() -> None:
    with pytest.raises(InvalidMessage):
        Input(Order, {**encode(ORDER), "notes": [{"name": 1}]})


def test_as_many_are_kept_as_there_is_room_for() -> None:
    kept = Input(Order, encode(ORDER))
    inputs, now = (
        LruCache[Began, Input](2 * kept.size, lambda input: input.size),
        datetime.now(UTC),
    )
    first, second, third = ((uuid4(), now, 1) for _ in range(3))
    for process in (first, second, third):
        inputs.keep(process, kept)
    inputs.drop(third)

    found = [inputs.get(process) for process in (first, second, third)]
    assert found == [None, kept, None]
