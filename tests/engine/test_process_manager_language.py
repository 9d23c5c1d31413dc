"""Through the engine: events that the class rejects, fields that functions compute, keys that are empty."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from orchestrator.testing import Process, registered, started

pytestmark = pytest.mark.django_db


class AccountOpened(Event):
    holder: str
    amount: int = 0


class MoneyPaid(Event):
    amount: int


class AccountFrozen(Event):
    pass


class AccountClosed(Event):
    amount: int


class Send(Command):
    holder: str
    amount: int


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


class Announce(Command):
    notes: list[str]


class ListOpened(Event):
    notes: list[str]


class ListSent(Event):
    pass


@dataclass(frozen=True)
class Notes:
    notes: list[str]


class NoteList(ProcessManager):
    """Hands a list of its data to a handler."""

    Step, Data = Step, Notes
    transitions = (
        during(Step.NEW, when(ListOpened).go_to(Step.OPEN)),
        during(Step.OPEN, when(ListSent).issue(Announce).go_to(Step.FROZEN)),
        during(Step.FROZEN, when(ListSent).go_to(Step.CLOSED)),
    )


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


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definition."""
    with registered(Account, NoteList):
        yield


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """Return the commands that were carried out."""
    found: list[Command] = []
    entry = registry.Handler(found.append, Send, False, 1, 5, "default")
    monkeypatch.setitem(registry.command_handlers, "Send", [entry])
    return found


def opened() -> Process:
    return started(Account, AccountOpened("Ito"))


def test_counters_and_sums_are_stored_and_filled_into_commands(
    sent: list[Command],
) -> None:
    account = opened()
    for amount in (30, 12):
        account.send(MoneyPaid(amount))
    account.send(AccountFrozen())
    account.send(AccountClosed(7))

    assert account.data == Data("Ito", amount=42, payments=2)
    assert sent == [Send("Ito", 42)]
    stored = Checkpoint.objects.order_by("revision").values_list("data", flat=True)
    assert [row["amount"] for row in stored] == [0, 30, 42, 42, 42]


def test_a_replay_reads_what_the_functions_gave_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_what_a_handler_does_to_its_command_does_not_reach_the_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def add(command: Announce) -> None:
        command.notes.append("added by the handler")

    entry = registry.Handler(add, Announce, False, 1, 5, "default")
    monkeypatch.setitem(registry.command_handlers, "Announce", [entry])
    notes = started(NoteList, ListOpened(["first"]))
    notes.send(ListSent())

    assert notes.data == Notes(["first"])
    assert notes.commands == [Announce(["first"])]


# Keys


@pytest.mark.parametrize("holder", ["", " "])
def test_a_start_without_its_key_is_refused(holder: str) -> None:
    with pytest.raises(InvalidMessage, match="must not be empty in AccountOpened"):
        start_process(Account, AccountOpened(holder), id="1")
    assert not InboxEvent.objects.exists()


def test_so_is_an_event_that_is_to_find_its_process_by_it() -> None:
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


@pytest.mark.parametrize(
    ("registers", "function", "reason"),
    [
        (handles(Send), send, "runs inside the commit, where nothing may wait"),
        (handles(Send, threads=2), plainly, "has threads, and runs inside the commit"),
        (reacts_to(MoneyPaid), look, "inside a transaction, where nothing may wait"),
        (reacts_to(MoneyPaid), note, "asynchronous and yields: a handler returns"),
        (handles(Send, after_commit=True, threads=2), send, "and needs no threads"),
        (handles(Send, after_commit=True, threads=0), plainly, "a whole number from 1"),
    ],
)
def test_a_handler_waits_only_outside_after_the_commit(
    registers: Any, function: Any, reason: str
) -> None:
    before = len(registry.command_handlers["Send"])
    with pytest.raises(InvalidDefinition, match=reason):
        registers(function)
    assert not registry.reactions.get("MoneyPaid")
    assert len(registry.command_handlers["Send"]) == before


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"attempts": 0}, "attempts=0 must be a whole number from 1"),
        ({"timeout": -1}, "timeout=-1 must be seconds, more than 0"),
        ({"queue": ""}, "queue='' must be the name of a queue"),
    ],
    ids=lambda given: given if isinstance(given, str) else next(iter(given)),
)
@pytest.mark.parametrize("registers", [handles, reacts_to])
def test_a_handler_that_could_never_be_carried_out_is_refused(
    registers: Any, given: dict[str, Any], reason: str
) -> None:
    message = Send if registers is handles else MoneyPaid
    with pytest.raises(InvalidDefinition, match=reason):
        registers(message, **given)(print)
    assert not registry.reactions.get("MoneyPaid")
