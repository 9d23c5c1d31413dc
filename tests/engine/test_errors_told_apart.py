"""What is told of an error, and which failures are alike: its causes and members, values and secrets."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import pytest

from orchestrator import send_event
from orchestrator.definition import (
    Event,
    ProcessManager,
    Workflow,
    during,
    secret,
    step,
    when,
)
from orchestrator.engine.change.incidents import fingerprint
from orchestrator.models import Incident
from orchestrator.testing import failing, replaced, run, started
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Address:
    name: str


def ship(to: Address) -> None: ...


class Shipment(Workflow):
    @dataclass(frozen=True)
    class Input:
        to: Address

    flow = (step(ship, retries=0),)


INPUT = Shipment.Input(Address("Ann Lee"))


def no_address(to: Address) -> None:
    raise LookupError(f"no address for {to.name[::-1]}")


def no_scale(to: Address) -> None:
    raise KeyError(f"no scale for {to.name[::-1]}")


def neither(to: Address) -> None:
    """Fail in two ways at once."""
    found = list[Exception]()
    for one in (no_scale, no_address):
        try:
            one(to)
        except LookupError as error:
            found.append(error)
    raise ExceptionGroup("neither", found)


def blamed_on_itself(to: Address) -> None:
    error = LookupError("lost")
    raise error from error


# Secrets


class DoorStep(StrEnum):
    NEW = "New"
    OPEN = "Open"


REFUSED: list[str] = []
"""The pins that the running code refuses to read."""

PIN = "hush-7f3a"


class DoorOpened(Event):
    door: str
    pin: str

    def __post_init__(self) -> None:
        if self.pin in REFUSED:
            raise ValueError(f"{self.pin} is not long enough")


class AlarmArmed(Event):
    door: str
    pin: str


class Door(ProcessManager):
    """Calls nothing a secret."""

    @dataclass(frozen=True)
    class Data:
        door: str

    correlation = "door"
    Step = DoorStep
    transitions = (during(DoorStep.NEW, when(DoorOpened).go_to(DoorStep.OPEN)),)


class Alarm(ProcessManager):
    """Calls its pin a secret."""

    @dataclass(frozen=True)
    class Data:
        door: str
        pin: str = secret()

    correlation = "door"
    Step = DoorStep
    transitions = (during(DoorStep.NEW, when(AlarmArmed).go_to(DoorStep.OPEN)),)


known = knowing(Shipment, Door, Alarm)


@pytest.fixture
def stricter() -> Iterator[None]:
    """Let the running code refuse what an earlier release has stored."""
    yield
    REFUSED.clear()


@pytest.mark.usefixtures("stricter")
def test_of_an_event_that_no_code_reads_nothing_is_told_that_any_definition_calls_secret() -> (
    None
):
    send_event(DoorOpened("north", PIN), id="1")
    REFUSED.append(PIN)
    run()

    told = Incident.objects.get()
    assert "cannot read DoorOpened" in told.message
    assert "is not long enough" in told.message
    assert PIN not in told.message


# Causes, members and values


def test_an_error_that_is_its_own_cause_fails_its_step() -> None:
    with replaced(ship, blamed_on_itself):
        process = started(Shipment, INPUT)

    assert process.incidents == ["LookupError: lost"]


def test_failures_in_a_group_of_errors_are_told_apart_by_its_members() -> None:
    with replaced(ship, neither):
        started(Shipment, INPUT)

    told = Incident.objects.get()
    members = [
        f"KeyError in {__name__}.no_scale",
        f"LookupError in {__name__}.no_address",
    ]
    raised = ", ".join([f"ExceptionGroup in {__name__}.neither", *members])
    about = told.kind, "shipment", "ship", ""
    assert told.fingerprint == fingerprint(*about, told.error, raised)


def test_values_at_any_depth_of_the_input_do_not_tell_failures_apart() -> None:
    with failing(ship, LookupError("no address for Ann Lee")):
        started(Shipment, INPUT)

    told = Incident.objects.get()
    about = told.kind, "shipment", "ship", "LookupError: no address for #"
    assert told.fingerprint == fingerprint(*about, told.error, told.place)
