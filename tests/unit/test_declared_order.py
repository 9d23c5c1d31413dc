"""The fields of a stored value are shown in the order of their declaration, whatever the database has made of it."""

from dataclasses import dataclass
from typing import Any

from orchestrator.definition.codec.declared_order import in_declared_order
from tests.services.cases import cases


@dataclass(frozen=True)
class Place:
    street: str
    no: int


@dataclass(frozen=True)
class Order:
    parcel: str
    to: Place
    by: Place | None
    ways: list[Place]
    named: dict[str, Place]


PLACE, SORTED = {"street": "A", "no": 1}, {"no": 1, "street": "A"}


@cases(
    "form, value, shown",
    (Place, SORTED, PLACE),
    (list[Place], [SORTED, SORTED], [PLACE, PLACE]),
    (dict[str, Place], {"b": SORTED, "a": SORTED}, {"b": PLACE, "a": PLACE}),
    (Place | None, SORTED, PLACE),
    (Place, {"no": 1, "of old": 2, "street": "A"}, {"no": 1, "of old": 2, "street": "A"}),
    (Place, "text", "text"),
    (None, SORTED, SORTED),
    (
        Order,
        {"by": SORTED, "to": SORTED, "ways": [SORTED], "named": {"x": SORTED}, "parcel": "P"},
        {"parcel": "P", "to": PLACE, "by": PLACE, "ways": [PLACE], "named": {"x": PLACE}},
    ),
)  # fmt: skip
def test_fields_are_in_their_order(form: Any, value: Any, shown: Any) -> None:
    found = in_declared_order(form, value)
    assert (found, str(found)) == (shown, str(shown))


def test_annotations_that_cannot_be_read_change_nothing() -> None:
    @dataclass
    class Odd:
        b: "Unknown"  # type: ignore[name-defined]  # noqa: F821
        a: int

    assert list(in_declared_order(Odd, {"a": 1, "b": 2})) == ["b", "a"]
