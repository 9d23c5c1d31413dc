"""Messages and data as JSON: strict, the same on every database, or refused with the path of the mistake."""

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.definition import Event
from orchestrator.definition.codec import (
    MAX_DEPTH,
    canonical_json,
    check_json,
    decode,
    digest,
    encode,
    encode_as,
)
from orchestrator.definition.messages import STRICT
from orchestrator.exceptions import InvalidMessage
from tests.services.cases import cases


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass(frozen=True)
class Line:
    article: str
    price: Decimal
    pieces: int = 1


class Everything(Event):
    text: str
    number: int
    ratio: float
    yes: bool
    price: Decimal
    at: datetime
    day: date
    id: UUID
    colour: Colour
    size: Size
    line: Line
    maybe: str | None
    lines: list[Line]
    pair: tuple[int, str]
    counts: dict[str, int]


class Note(Event):
    text: str = ""
    number: int = 0
    ratio: float = 0.0
    lines: list[Line] = field(default_factory=list)


class Dated(Event):
    colour: Colour
    day: date


class Anything(Event):
    value: Any


def stored(value: object) -> Any:
    """Return JSON values as a text column would give them back."""
    return json.loads(canonical_json(value))


# There and back


def test_the_stored_form_is_plain_json() -> None:
    line = {"article": "nut", "price": "0.10", "pieces": 1}
    body = {"text": "ü", "number": 1, "ratio": 2.5, "lines": [line]}
    assert encode(Note("ü", 1, 2.5, [Line("nut", Decimal("0.10"))])) == body


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)
floats = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.decimals(allow_nan=False, allow_infinity=False)
lines = st.builds(Line, texts, decimals, st.integers())
everything = st.builds(
    Everything,
    text=texts,
    ratio=floats,
    price=decimals,
    at=st.datetimes(timezones=st.just(UTC)),
    line=lines,
    maybe=st.none() | texts,
    lines=st.lists(lines, max_size=3),
    pair=st.tuples(st.integers(), texts),
    counts=st.dictionaries(texts, st.integers(), max_size=3),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(everything)
def test_whatever_can_be_encoded_comes_back_as_it_was(message: Everything) -> None:
    assert decode(Everything, stored(encode(message))) == message


values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values)
def test_any_json_is_taken_as_it_is_or_refused(value: Any) -> None:
    try:
        body = encode(Anything(value))
    except InvalidMessage:
        return

    assert encode(decode(Anything, stored(body))) == body


# Values that no database stores, or not every one


@cases("number", float("nan"), float("inf"), float("-inf"))
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    with pytest.raises(InvalidMessage, match=r"^ratio: "):
        decode(Note, {"ratio": number})
    with pytest.raises(InvalidMessage):
        encode(Note(ratio=number))


@cases("text", "\ud800", "a\udfff", "ü\ud83d")
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(InvalidMessage):
        encode(Note(text))
    with pytest.raises(InvalidMessage, match=r"^text: text must not contain lone"):
        decode(Note, {"text": text})


def test_the_nul_character_is_refused_in_keys_too() -> None:
    with pytest.raises(InvalidMessage, match=r"^text: text must not contain the NUL"):
        encode(Note("a\0b"))
    with pytest.raises(InvalidMessage, match="NUL"):
        encode(Anything({"a\0b": 1}))


@cases("key", 1, None, True, (1, 2))
def test_keys_are_text(key: object) -> None:
    with pytest.raises(InvalidMessage, match="must be text"):
        check_json({"counts": {key: 1}})


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@cases("levels", MAX_DEPTH + 1, 1_000, 100_000)
def test_nesting_is_taken_to_the_limit_and_refused_beyond(levels: int) -> None:
    check_json(nested(MAX_DEPTH))
    with pytest.raises(InvalidMessage, match="nested deeper than 64 levels"):
        check_json(nested(levels))
    with pytest.raises(InvalidMessage, match=r"nested deeper|depth|recursion"):
        encode(Anything(nested(levels)))


@cases("sign", 1, -1)
def test_a_number_that_python_will_not_read_again_is_refused(sign: int) -> None:
    number = sign * 10**5_000

    with pytest.raises(InvalidMessage, match=r"^number: .*too many digits"):
        encode(Note(number=number))
    with pytest.raises(InvalidMessage, match=r"^number: .*too many digits"):
        decode(Note, {"number": number})


@cases("value", {1, 2}, b"a", object(), 1 + 2j)
def test_what_is_no_json_value_is_refused(value: object) -> None:
    with pytest.raises(InvalidMessage, match=r"^a\.0: .* is not a JSON value"):
        check_json({"a": [value]})


@cases("number", 1e16, 1e22, 1e23, -1.5e300, 1.7976931348623157e308, -0.0)
def test_a_number_has_a_form_that_every_database_gives_back(number: float) -> None:
    body = encode(Note(ratio=number))

    assert "e+" not in canonical_json(body)
    assert canonical_json(body["ratio"]) != "-0.0"
    assert decode(Note, stored(body)).ratio == number


# What does not have the declared form


NUT = {"article": "nut", "price": "1"}
NO_OBJECTS: list[Any] = [[], "text", None]
NO_DAYS = ("2026-02-30", "yesterday", 20260301, 1e9)


@cases(
    "body, said",
    ({"text": 3}, "text: Input should be a valid string"),
    *(({"number": one}, "number: Input should be a valid") for one in ("3", 3.0, True)),
    ({"ratio": "0.5"}, "ratio: Input should be a valid number"),
    ({"colour": "red"}, "colour: Unexpected keyword argument"),
    ({"lines": [{"article": "nut"}]}, "lines.0.price: Field required"),
    ({"lines": [{**NUT, "colour": "red"}]}, "lines.0.colour: Unexpected keyword"),
    ({"lines": [{**NUT, "pieces": "5"}]}, "lines.0.pieces: Input should be a valid"),
    ({"text": None}, "text: Input should be a valid string"),
    *((one, "Input should be") for one in NO_OBJECTS),
)
def test_what_does_not_fit_is_named_by_its_path(body: object, said: str) -> None:
    with pytest.raises(InvalidMessage) as refused:
        decode(Note, body)

    assert str(refused.value).startswith(said)


@cases(
    "body, said",
    ({}, r"^colour: Field required"),
    *(({"colour": "red", "day": day}, r"^day: ") for day in NO_DAYS),
    ({"colour": "green", "day": "2026-03-01"}, r"^colour: Input should be 'red' or 'b"),
)
def test_what_is_missing_or_no_day_or_no_value_of_an_enumeration_is_named(
    body: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidMessage, match=said):
        decode(Dated, body)


def test_further_mistakes_are_counted() -> None:
    with pytest.raises(InvalidMessage, match=r"^text: .* \(and 1 more\)$"):
        decode(Note, {"text": 1, "number": "2"})


@cases(
    "message",
    Note(text=3),  # type: ignore[arg-type]
    Note(number="3"),  # type: ignore[arg-type]
    Note(lines=[{"article": "nut"}]),  # type: ignore[list-item]
    Anything({1, 2, object()}),
    Anything(timedelta),
)
def test_a_value_of_another_type_than_declared_is_not_written(message: Event) -> None:
    with pytest.raises(InvalidMessage):
        encode(message)


# The one way to write a value


def test_equal_values_have_equal_text() -> None:
    assert canonical_json({"b": [1, 2.5], "a": "ü"}) == '{"a":"ü","b":[1,2.5]}'
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": "1"})


@dataclass(frozen=True)
class Shallow:
    __pydantic_config__ = STRICT
    line: Line


def test_strictness_reaches_what_is_nested() -> None:
    with pytest.raises(InvalidMessage, match=r"^line.price: "):
        decode(Shallow, {"line": {"article": "nut", "price": "cheap"}})


@dataclass(frozen=True)
class Inner:
    number: int


class Strict(Event):
    number: int
    text: str = ""
    several: list[int] = field(default_factory=list)
    inner: Inner = Inner(1)  # frozen
    kind: Literal["a", "b"] = "a"
    perhaps: int | None = None


@cases(
    "given, path",
    ({"number": None}, "number"),
    ({"number": "1"}, "number"),
    ({"number": 1, "text": None}, "text"),
    ({"number": 1, "several": [1, None]}, "several.1"),
    ({"number": 1, "inner": Inner(None)}, "inner.number"),  # type: ignore[arg-type]
    ({"number": 1, "kind": "c"}, "kind"),
    ({"number": 1, "perhaps": "2"}, "perhaps"),
)
def test_what_could_not_be_read_is_not_written(given: Any, path: str) -> None:
    with pytest.raises(InvalidMessage, match=f"^Strict: {path}: "):
        encode(Strict(**given))


@cases(
    "annotation, value",
    (int, None),
    (list[int], [None]),
    (Inner, Inner(None)),  # type: ignore[arg-type]
    (dict[str, Inner], {"a": Inner("1")}),  # type: ignore[arg-type]
    (int | str, None),
)
def test_results_are_written_as_strictly(annotation: Any, value: object) -> None:
    with pytest.raises(InvalidMessage):
        encode_as(annotation, value)


def test_none_is_written_where_it_may_be() -> None:
    assert encode(Strict(1))["perhaps"] is None
    assert encode_as(int | None, None) is None
    assert encode_as(Any, None) is None


# Sets


class Labelled(Event):
    labels: frozenset[int]
    more: dict[str, list[set[int]]]


def test_a_set_is_written_in_one_order() -> None:
    one = Labelled(frozenset([0, 8]), {"a": [{8, 0}]})
    other = Labelled(frozenset([8, 0]), {"a": [{0, 8}]})

    assert one == other
    assert encode(one) == encode(other) == {"labels": [0, 8], "more": {"a": [[0, 8]]}}
    assert encode_as(frozenset[int], frozenset([8, 0])) == [0, 8]
