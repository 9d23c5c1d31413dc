"""Through the engine: events that the class rejects, fields that functions compute, keys that are empty."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from orchestrator import handles, reacts_to, registry, send_event, start_process
from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    during,
    park,
    reject,
    when,
)
from orchestrator.engine.invariants import violations
from orchestrator.exceptions import InvalidDefinition, InvalidMessage
from orchestrator.models import Checkpoint, InboxEvent, ProcessInstance, Status
from orchestrator.testing import Process, started
from tests.apps.process_managers.fixtures import SetHandler
from tests.services.cases import cases
from tests.services.operated import knowing

pytestmark = pytest.mark.django_db


class AccountOpened(Event):
    holder: str
    amount: int = 0
    notes: list[str] = field(default_factory=list)


class MoneyPaid(Event):
    amount: int


class AccountFrozen(Event):
    pass


class AccountClosed(Event):
    amount: int


class Send(Command):
    holder: str
    amount: int
    notes: list[str]


class Step(StrEnum):
    NEW = "New"
    OPEN = "Open"
    FROZEN = "Frozen"
    CLOSED = "Closed"


@dataclass(frozen=True)
class Data:
    holder: str
    amount: int = 0
    payments: int = 0
    notes: list[str] = field(default_factory=list)


factor = {"by": 1}


def sum_of_payments(data: Data, event: MoneyPaid) -> int:
    return data.amount + event.amount * factor["by"]


def one_more(data: Data, event: object) -> int:
    return data.payments + factor["by"]


class Account(ProcessManager):
    """Adds up what is paid in."""

    Step, Data = Step, Data
    correlation = "holder"
    otherwise = reject

    transitions = (
        during(Step.NEW, when(AccountOpened).go_to(Step.OPEN)),
        during(
            Step.OPEN,
            when(MoneyPaid).set(amount=sum_of_payments, payments=one_more),
            when(AccountFrozen).go_to(Step.FROZEN),
            park(AccountClosed),
        ),
        during(
            Step.FROZEN,
            when(AccountClosed).keep("amount").issue(Send).go_to(Step.CLOSED),
        ),
    )


known = knowing(Account)


@pytest.fixture(autouse=True)
def sent(handler: SetHandler) -> list[Command]:
    """Return the commands that were carried out."""
    found: list[Command] = []
    handler(Send, found.append)
    return found


def opened() -> Process:
    return started(Account, AccountOpened("Ito"))


def test_counters_and_sums_are_stored_and_in_commands(sent: list[Command]) -> None:
    account = opened()
    for event in (MoneyPaid(30), MoneyPaid(12), AccountFrozen(), AccountClosed(7)):
        account.send(event)

    assert account.data == Data("Ito", amount=42, payments=2)
    assert sent == [Send("Ito", 42, [])]
    stored = Checkpoint.objects.order_by("revision").values_list("data", flat=True)
    assert [row["amount"] for row in stored] == [0, 30, 42, 42, 42]


def test_a_replay_reads_what_they_gave_then(monkeypatch: pytest.MonkeyPatch) -> None:
    account = opened()
    account.send(MoneyPaid(30))
    monkeypatch.setitem(factor, "by", 100)
    account.send(MoneyPaid(1))

    assert account.data == Data("Ito", amount=130, payments=101)
    assert violations() == []


def test_what_the_class_rejects_is_an_incident_at_once() -> None:
    account = opened()

    assert account.send(AccountOpened("Ito", 3)) == "rejected"
    assert account.incidents == ["AccountOpened is rejected in step Open"]
    assert account.status == Status.WAITING


def test_what_may_come_early_is_parked_and_taken_in_its_step() -> None:
    account = opened()

    assert account.send(AccountClosed(7)) == "parked"
    account.send(AccountFrozen())
    assert account.status == Status.COMPLETED
    assert InboxEvent.objects.get(type="AccountClosed").verdict == "moved"


def test_what_a_handler_does_to_a_command_leaves_the_data(handler: SetHandler) -> None:
    handler(Send, lambda command: command.notes.append("added by the handler"))
    account = started(Account, AccountOpened("Ito", notes=["first"]))
    account.send(AccountFrozen())
    account.send(AccountClosed(7))

    assert account.data.notes == ["first"]
    assert account.commands == [Send("Ito", 0, ["first"])]


# Keys


def test_without_its_key_no_process_is_started_or_found_by_an_event() -> None:
    for holder in ("", " "):
        with pytest.raises(InvalidMessage, match="must not be empty in AccountOpened"):
            start_process(Account, AccountOpened(holder), id="1")
    with pytest.raises(InvalidMessage, match="holder: the correlation key of account"):
        send_event(AccountOpened(""), id="1")
    with pytest.raises(InvalidMessage, match="the correlation key must not be blank"):
        send_event(MoneyPaid(3), id="1", correlation_key=" ")
    assert not InboxEvent.objects.exists()


def test_a_key_that_is_given_stands_in_for_the_events_own() -> None:
    start_process(Account, AccountOpened(""), id="1", correlation_key="Ito")

    assert InboxEvent.objects.get().correlation_key == "Ito"


def test_a_process_whose_key_was_stored_empty_goes_on() -> None:
    account = opened()
    ProcessInstance.objects.update(correlation_key="")

    account.send(MoneyPaid(3))
    assert account.data.amount == 3


# Handlers


async def send(command: Send) -> None:
    pass


async def note(event: MoneyPaid) -> Any:
    yield 1


async def look(event: MoneyPaid) -> None:
    pass


def plainly(command: Send) -> None:
    pass


@cases(
    "registers, function, reason",
    (handles(Send), send, "runs inside the commit, where nothing may wait"),
    (handles(Send, threads=2), plainly, "has threads, and runs inside the commit"),
    (reacts_to(MoneyPaid), look, "inside a transaction, where nothing may wait"),
    (reacts_to(MoneyPaid), note, "asynchronous and yields: a handler returns"),
    (handles(Send, after_commit=True, threads=2), send, "and needs no threads"),
    (handles(Send, after_commit=True, threads=0), plainly, "a whole number from 1"),
)
def test_a_handler_waits_only_outside_after_the_commit(
    registers: Any, function: Any, reason: str
) -> None:
    before = len(registry.command_handlers["Send"])
    with pytest.raises(InvalidDefinition, match=reason):
        registers(function)
    assert not registry.reactions.get("MoneyPaid")
    assert len(registry.command_handlers["Send"]) == before


@cases(
    "given, reason",
    ({"attempts": 0}, "attempts=0 must be a whole number from 1"),
    ({"timeout": -1}, "timeout=-1 must be seconds, more than 0"),
    ({"queue": ""}, "queue='' must be the name of a queue"),
)
def test_a_handler_that_could_never_be_carried_out_is_refused(
    given: dict[str, Any], reason: str
) -> None:
    both: list[tuple[Any, Any]] = [(handles, Send), (reacts_to, MoneyPaid)]
    for registers, message in both:
        with pytest.raises(InvalidDefinition, match=reason):
            registers(message, **given)(print)
    assert not registry.reactions.get("MoneyPaid")
