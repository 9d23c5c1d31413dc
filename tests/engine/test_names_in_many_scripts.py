"""Names, keys and ids: whatever ordinary names have is taken, and what steers a page or a terminal is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from orchestrator import send_event, start_process
from orchestrator.definition import (
    Event,
    ProcessManager,
    Workflow,
    after,
    during,
    step,
    when,
)
from orchestrator.exceptions import InvalidDefinition, InvalidMessage
from orchestrator.models import InboxEvent
from orchestrator.testing import registered, started
from orchestrator.text import is_plain_name

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

NAMES = {
    "Japanese": "東京\u3000支店",
    "no-break space": "Nr.\u00a07",
    "Persian": "می\u200cروم",
    "Sinhala": "ශ\u0dca\u200dර\u0dd3",
    "joined emoji": "👩\u200d💻",
    "an emoji of Unicode 17": "\U0001fac8",
}
STEERING = [
    "a\nb",
    "a\0b",
    "a\x1b[2J",
    "a\x9b",
    "a\u061c",
    "a\u200e",
    "a\u200f",
    "a\u2028b",
    "a\u2029b",
    "a\u202eb",
    "a\u2066b",
    "a\ud800",
]
BLANK = [" ", "\u3000", "\u200d", "\u00a0\u200c", "\ufeff"]


@dataclass(frozen=True)
class Named:
    name: str


def echo(name: str) -> str:
    return name


class Keyed(Workflow):
    Input = Named
    correlation = "name"
    flow = (echo,)


class ParcelNamed(Event):
    name: str


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Register the workflow with a key."""
    with registered(Keyed):
        yield


def managed(recipient: str, person: str) -> type[ProcessManager]:
    """Return a process manager that tells this recipient and assigns this person."""

    class Step(StrEnum):
        NEW = "New"
        WAITING = "Waiting"
        ENDED = "Ended"

    ends = after(timedelta(hours=1)).notify(recipient).assign(person).go_to(Step.ENDED)
    rows = (
        during(Step.NEW, when(ParcelNamed).go_to(Step.WAITING)),
        during(Step.WAITING, ends),
    )
    return type(
        "Managed",
        (ProcessManager,),
        {"Step": Step, "Data": Named, "transitions": rows},
    )


def stepped(name: str) -> type[Workflow]:
    """Return a workflow with a step of this name."""
    return type("Stepped", (Workflow,), {"Input": Named, "flow": (step(echo, name),)})


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_correlation_key_may_have_what_ordinary_names_have(name: str) -> None:
    assert started(Keyed, Named(name)).instance.correlation_key == name


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_ids_and_sources_may_have_what_ordinary_names_have(name: str) -> None:
    send_event(ParcelNamed("a"), id=name, source=name)
    found = InboxEvent.objects.values_list("event_id", "source")
    assert {*found} == {(name, name)}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_declarations_may_have_what_ordinary_names_have(name: str) -> None:
    assert stepped(name).graph().nodes[0].id == name
    assert managed(name, name).graph().edges


@pytest.mark.parametrize("name", [*STEERING, *BLANK], ids=ascii)
def test_names_that_steer_or_are_blank_are_refused_in_messages(name: str) -> None:
    given: list[dict[str, Any]] = [{"id": name}, {"id": "1", "source": name}]
    for one in given:
        with pytest.raises(InvalidMessage, match=r"the (id|source) must"):
            send_event(ParcelNamed("a"), **one)
        with pytest.raises(InvalidMessage, match=r"the (id|source) must"):
            start_process(Keyed, Named("a"), **one)
    with pytest.raises(InvalidMessage):
        start_process(Keyed, Named(name))


def test_two_sources_never_start_one_process() -> None:
    """The line end once stood between source and id in what makes the process id."""
    start_process(Keyed, Named("x"), source="shop", id="b")
    with pytest.raises(InvalidMessage, match="the source must"):
        start_process(Keyed, Named("y"), source="shop\na", id="b")
    with pytest.raises(InvalidMessage, match="the id must"):
        start_process(Keyed, Named("y"), source="shop", id="a\nb")


@pytest.mark.parametrize("given", [{"id": "x" * 201}, {"id": "1", "source": "x" * 101}])
def test_ids_and_sources_of_starts_are_as_long_as_those_of_events(
    given: dict[str, Any],
) -> None:
    with pytest.raises(InvalidMessage, match="must have at most"):
        start_process(Keyed, Named("a"), **given)


def test_an_ordinary_id_makes_the_process_id_that_it_always_made() -> None:
    receipt = start_process(Keyed, Named("a"), id="web-1", source="web")
    made = uuid5(NAMESPACE_URL, f"{Keyed.name}\nweb\nweb-1")
    assert receipt.process_id == made


@pytest.mark.parametrize("name", [*STEERING, *BLANK], ids=ascii)
def test_names_that_steer_or_are_blank_are_refused_in_declarations(name: str) -> None:
    with pytest.raises(InvalidDefinition, match="not blank, without control"):
        stepped(name)
    with pytest.raises(InvalidDefinition, match="not blank, without control"):
        managed("duty", name)
    with pytest.raises(InvalidDefinition, match="not blank, without control"):
        managed(name, "duty")


def test_names_do_not_depend_on_the_unicode_table_of_this_python() -> None:
    unassigned = "\U0001faff"
    assert not unassigned.isprintable()
    assert is_plain_name(unassigned)
