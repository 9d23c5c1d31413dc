"""Failures about a wrong value are one group whatever the value says; other fields and other types are other groups."""

from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.definition import Workflow, step
from orchestrator.engine.change.incidents import fingerprint
from orchestrator.engine.storage.stored_values import read_stored
from orchestrator.exceptions import UnreadableValue
from orchestrator.models import Incident
from orchestrator.testing import started
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

NAMES = ("Ann Lee", "Bo", "it's, input_type", "Дана", "佐藤")


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Line:
    price: int
    number: int = 1


@dataclass(frozen=True)
class Basket:
    lines: dict[str, Line]


def wrong(function: Any) -> type[Workflow]:
    """Return a workflow whose step gives back what is not of its type."""
    attributes = {"Input": Named, "flow": (step(function, "gives", retries=0),)}
    return type(function.__name__.title(), (Workflow,), attributes)


def number(name: str) -> int:
    return name[::-1]  # type: ignore[return-value]  # the mistake


def numbers(name: str) -> dict[str, int]:
    return {name: name}  # type: ignore[dict-item]  # the mistake


def basket(name: str) -> Basket:
    return Basket({name: Line(name[::-1])})  # type: ignore[arg-type]  # the mistake


def pair(name: str) -> dict[str, Any]:
    return {name: {"pair": (name, 1)}}


def torn(name: str) -> list[dict[str, str]]:
    return [{name: f"{name}\0"}]


WRONG = [wrong(one) for one in (number, numbers, basket, pair, torn)]


def field(name: str) -> Line:
    if name == "Bo":
        return Line(1, "2")  # type: ignore[arg-type]  # the mistake
    return Line("1")  # type: ignore[arg-type]  # the mistake


Fields = wrong(field)
known = knowing(*WRONG, Fields)


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.name)
def test_a_wrong_result_is_one_group_whatever_it_says(kind: type[Workflow]) -> None:
    for name in NAMES:
        started(kind, Named(name))

    found = Incident.objects.values_list("fingerprint", flat=True)
    assert (len(found), len({*found})) == (len(NAMES), 1)


def test_wrong_fields_are_groups_of_their_own() -> None:
    for name in NAMES:
        started(Fields, Named(name))

    assert len({*Incident.objects.values_list("fingerprint", flat=True)}) == 2


def test_the_group_of_an_earlier_release_is_known() -> None:
    started(WRONG[0], Named("Ann Lee"))

    row = Incident.objects.get()
    about = row.kind, WRONG[0].name, row.step
    assert row.earlier == fingerprint(*about, row.message, row.error, row.place)


def test_what_cannot_be_read_is_one_group_by_its_name() -> None:
    found = set[str]()
    for name, said in (("Paid", "a"), ("Paid", "b"), ("Sent", "a")):
        with pytest.raises(UnreadableValue) as raised:
            read_stored(dict[str, int], {said: said}, name)
        found.add(raised.value.alike)

    assert len(found) == 2
