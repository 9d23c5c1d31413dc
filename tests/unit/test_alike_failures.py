"""Which failures are of one cause."""

from functools import partial
from uuid import uuid4

import pytest

from orchestrator.engine.change.code_places import error_class_name, place_in_code
from orchestrator.engine.change.incidents import (
    fingerprint,
    normalize,
    without_values,
)
from orchestrator.text import Text
from tests.services.cases import cases

cause = partial(
    fingerprint,
    kind="step_failed",
    definition="delivery",
    step="ship",
    message="ValueError: no address",
    error="ValueError",
    place="parcels.ship",
)


@cases(
    "one, other",
    (f"no order {uuid4()}", f"no order {uuid4()}"),
    ("order A-17 of 2026-11-23T03:32:13.5+00:00", "order A-9 of 2025-01-01"),
    ("3 of 4 failed", "17 of 1,204 failed"),
    ("<Parcel object at 0x7f3a>", "<Parcel object at 0x55ee01>"),
    ("no such user ann@example.org", "no such user b.c+d@example.com"),
    ("a  message\n of two lines", "a message of two lines"),
    ("10.0.0.1:5432 refused", "192.168.1.12:6543 refused"),
    ("x" * 300 + "one end", "x" * 300 + "another"),
)
def test_messages_that_differ_in_their_subject_are_alike(one: str, other: str) -> None:
    assert cause(message=one) == cause(message=other)


@cases(
    "other",
    {"kind": "event_failed"},
    {"definition": "returns"},
    {"step": "pack"},
    {"message": "ValueError: no name"},
    {"error": "parcels.ValueError"},
    {"place": "parcels.pack"},
)
def test_whatever_else_differs_makes_another_cause(other: dict[str, str]) -> None:
    assert cause(**other) != cause()


def test_a_message_of_any_length_is_looked_at_quickly() -> None:
    for text in ("a@" * 100_000, "1" * 1_000_000, "#-" * 100_000, "a1-" * 100_000):
        assert len(normalize(text)) <= 200


class Torn(Exception):
    """An error of an application."""


def tear() -> None:
    raise Torn


def test_the_place_is_the_innermost_function_of_the_application() -> None:
    def ship() -> None:
        int("no number")

    def parse() -> None:
        import json

        json.loads("{")

    for function, name in ((ship, "ship"), (parse, "parse"), (tear, "tear")):
        with pytest.raises((Torn, ValueError)) as raised:
            function()
        place = place_in_code(raised.value)
        assert place.startswith(f"{__name__}.")
        assert place.endswith(name)


def test_a_library_is_the_place_where_nothing_else_is_on_the_way() -> None:
    import pydantic

    with pytest.raises(ValueError, match="valid integer") as raised:
        pydantic.TypeAdapter(int).validate_python("x")
    error = raised.value.with_traceback(raised.tb.tb_next)

    assert place_in_code(error).startswith("pydantic.")


def test_an_error_without_a_traceback_has_no_place() -> None:
    assert place_in_code(Torn()) == ""
    assert error_class_name(Torn()) == f"{__name__}.Torn"
    assert error_class_name(KeyError()) == "KeyError"


BODIES = [
    {"to": {"name": "Ann Lee", "first": "Ann", "short": "ab", "no": 7}},
    ["佐藤", "Shipped", "---", {"note": "card expired"}],
]


@cases(
    "message, plain",
    ("no address for Ann Lee", "no address for #"),
    ("Ann has no address", "# has no address"),
    ("KeyError: 'Ann Lee'", "KeyError: '#'"),
    ("Annex has no address", "Annex has no address"),
    ("ab has no address", "ab has no address"),
    ("佐藤様の住所がありません", "#様の住所がありません"),
    ("Shipped --- 7", "Shipped --- 7"),
    ("card expired", "card expired"),
    (Text("Ann Lee takes no %(what)s", "Ann Lee"), "Ann Lee takes no #"),
)
def test_values_are_left_out_of_a_message(message: str, plain: str) -> None:
    assert without_values(message, BODIES, step="Shipped") == plain


def test_values_of_any_number_and_length_are_looked_for_quickly() -> None:
    names = [f"name{'x' * (n % 300)}" for n in range(100_000)]
    text = f"lost: {' '.join(names)}"
    plain = without_values(text, [names, "y" * 1_000_000] * 3)
    assert normalize(plain).startswith("lost: # #")
