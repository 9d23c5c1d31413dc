"""S9.4: a form from an event's class. Each field by its type, what is empty, and what is wrong at its field."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import pytest
from django import forms
from pydantic import Field

from monitoring.forms.message_fields import OMITTED, MessageField, event_fields
from orchestrator.definition import Event
from orchestrator.definition.codec import decode, json_mistakes
from tests.services.cases import cases, words


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Shape(Enum):
    ROUND = "round"


@dataclass(frozen=True)
class Line:
    name: str
    price: Decimal


Name = NewType("Name", str)


class EverythingHappened(Event):
    text: str
    name: Name
    number: int
    share: float
    price: Decimal
    sure: bool
    size: Size
    level: Level
    shape: Shape
    mode: Literal["a", "b", 3]
    day: date
    at: datetime
    hour: time
    span: timedelta
    ref: UUID
    line: Line
    lines: list[Line]
    by_name: dict[str, int]
    either: int | str
    bounded: Annotated[int, Field(gt=0)]
    maybe: str | None
    perhaps: bool | None = None
    late: date | None = None
    count: int = 7
    label: str = "none"
    labels: list[str] = field(default_factory=lambda: ["x"])
    chosen: Size = Size.LARGE


SIMPLE = words("""
    share=0.5 price=10.50 sure=on size="large" level=2 shape="round" mode=3
    day=2026-11-23 at=2026-11-23T09:30:00+09:00 hour=09:30:00 span=PT1H30M either="x"
    ref=0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b bounded=1 by_name={"a":1}
""")
GIVEN = {
    **dict(one.split("=", 1) for one in SIMPLE),
    "text": "one\r\ntwo",
    "name": " n ",
    "number": " -12 ",
    "maybe": "",
    "line": '{"name": "a", "price": "1.10"}',
    "lines": '[{"name": "a", "price": "1.10"}]',
}


def made(event: type[Event]) -> dict[str, MessageField]:
    return {one.name: one for one in event_fields(event)}


def body_of(event: type[Event], given: dict[str, str]) -> dict[str, Any]:
    """Read what a form sends, field by field."""
    body = {}
    for name, one in made(event).items():
        shown = one.form_field()
        raw = shown.widget.value_from_datadict(given, {}, name)
        value = one.value(shown.clean(raw))
        if value is not OMITTED:
            body[name] = value
    return body


def test_s9_4_every_kind_of_field_is_read_as_its_class_reads_it() -> None:
    body = body_of(EverythingHappened, {**GIVEN, "chosen": '"small"', "count": "8"})

    assert json_mistakes(EverythingHappened, body) == []
    event = decode(EverythingHappened, body)
    assert event.text == "one\ntwo"
    assert event.name == " n "
    assert (event.number, event.share, event.price) == (-12, 0.5, Decimal("10.50"))
    assert (event.sure, event.size, event.level) == (True, Size.LARGE, Level.HIGH)
    assert (event.shape, event.mode, event.day) == (Shape.ROUND, 3, date(2026, 11, 23))
    assert event.at == datetime.fromisoformat(GIVEN["at"])
    assert (event.hour, event.span) == (time(9, 30), timedelta(minutes=90))
    assert event.ref == UUID(GIVEN["ref"])
    assert event.lines == [Line("a", Decimal("1.10"))] == [event.line]
    assert (event.by_name, event.either, event.bounded) == ({"a": 1}, "x", 1)
    assert (event.maybe, event.perhaps, event.late) == (None, None, None)
    assert (event.chosen, event.count) == (Size.SMALL, 8)


def test_s9_4_what_is_left_empty_is_nothing_a_default_or_an_empty_text() -> None:
    given = {**GIVEN, "sure": "", "text": "", "label": ""}
    del given["sure"]  # not ticked
    given |= {"perhaps": "false", "chosen": '"large"'}
    body = body_of(EverythingHappened, given)

    assert (body["maybe"], body["perhaps"], body["sure"]) == (None, False, False)
    assert (body["text"], body["label"]) == ("", "")
    assert not {"count", "labels"} & set(body)
    event = decode(EverythingHappened, body)
    assert (event.count, event.labels) == (7, ["x"])


def test_s9_4_defaults_stand_in_the_fields() -> None:
    fields = made(EverythingHappened)
    found = {name: one.form_field().initial for name, one in fields.items()}

    assert (found["count"], found["label"]) == ("7", "none")
    assert (found["labels"], found["chosen"]) == ('["x"]', '"large"')
    assert (found["text"], found["late"]) == (None, None)


@cases("name", "number", "price", "size", "day", "line", "mode")
def test_s9_4_what_must_be_given_is_asked_for(name: str) -> None:
    shown = made(EverythingHappened)[name].form_field()

    with pytest.raises(forms.ValidationError, match="required"):
        shown.clean("")


@cases(
    "name, text, said",
    ("number", "1.5", "Write a whole number."),
    ("number", "9" * 4_999, "Write a whole number."),
    ("share", "much", "Write a number."),
    ("line", "{", "This is not JSON"),
    ("line", '{"a": 1, "a": 2}', "occurs twice"),
    ("lines", "[" * 100, "nested deeper"),
    ("by_name", "NaN", "not a JSON number"),
    ("text", "a" * (256 * 1024 + 1), "at most"),
    ("text", "a\0b", "Null characters"),
    ("size", '"huge"', "valid choice"),
    ("mode", '"3"', "valid choice"),
)
def test_s9_4_a_mistake_is_said_at_its_field(name: str, text: str, said: str) -> None:
    one = made(EverythingHappened)[name]

    with pytest.raises(forms.ValidationError, match=said):
        one.value(one.form_field().clean(text))


@cases(
    "name, text, path",
    ("price", "dear", ("price",)),
    ("day", "2026-02-30", ("day",)),
    ("at", "soon", ("at",)),
    ("ref", "x", ("ref",)),
    ("bounded", "0", ("bounded",)),
    ("share", "nan", ("share",)),
    ("lines", '[{"name": "a", "price": "1"}, {"name": 5}]', ("lines", "1", "name")),
    ("line", '{"name": "a", "price": "1", "more": 1}', ("line",)),
)
def test_s9_4_what_the_class_refuses_has_the_path_to_its_field(
    name: str, text: str, path: tuple[str, ...]
) -> None:
    body = body_of(EverythingHappened, {**GIVEN, name: text, "chosen": '"small"'})

    found = json_mistakes(EverythingHappened, body)

    assert found
    assert found[0][0][: len(path)] == path


class Unresolvable(Event):
    text: str
    other: NoSuchType  # type: ignore[name-defined]  # noqa: F821
    some: int = 5


def test_s9_4_types_that_cannot_be_told_are_written_as_json() -> None:
    fields = made(Unresolvable)

    assert {str(one.hint) for one in fields.values()} == {"JSON"}
    body = body_of(Unresolvable, {"text": '"a"', "other": "null"})
    assert body == {"text": "a", "other": None}


class NothingHappened(Event):
    pass


def test_s9_4_an_event_may_have_no_fields() -> None:
    assert event_fields(NothingHappened) == []
    assert json_mistakes(NothingHappened, {}) == []
    assert json_mistakes(NothingHappened, {"a": 1})[0][0] == ("a",)


def test_s9_4_values_beyond_what_is_stored_have_their_path() -> None:
    [(path, said), *_] = json_mistakes(EverythingHappened, {"lines": [{"name": "a\0"}]})

    assert path == ("lines", "0", "name")
    assert said == "text must not contain the NUL character"
