"""Data fields that an event does not change, and fields that functions compute."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from orchestrator.definition import Command, Event, after, ignore, when
from orchestrator.definition.dataflow import reachable
from orchestrator.definition.graph import Graph
from tests.services.cases import cases
from tests.unit.shop import (
    PAY,
    SEND,
    START,
    Data,
    Pack,
    Paid,
    Payment,
    Refund,
    Sent,
    Step,
    define,
    refusal,
)


@dataclass(frozen=True)
class Account(Data):
    amount: int = 0
    payments: int = 0


ACCOUNT = Account("O-1", Payment.CARD, amount=5, payments=1)


def total(data: Account, event: Paid) -> int:
    return data.amount + event.amount


def one_more(data: Account, event: object) -> int:
    return data.payments + 1


async def slowly(data: Account, event: Paid) -> int:
    return 0


def bit_by_bit(data: Any, event: Any) -> Any:
    yield 1


def of_nothing() -> int:
    return 0


def in_words(data: Account, event: Paid) -> str:
    return "many"


STAY = when(Paid, final=False)


def counting(row: Any) -> Any:
    return define(unpaid=[row, PAY], Data=Account)


# Functions


def test_a_function_of_data_and_event_gives_a_fields_value_that_commands_see() -> None:
    row = STAY.set(amount=total, payments=one_more).issue(Refund)

    decision = counting(row).decide(Step.UNPAID, ACCOUNT, Paid(3, final=False))

    assert decision.data == Account("O-1", Payment.CARD, amount=8, payments=2)
    assert decision.commands == (Refund(8),)


def test_a_deadline_counts_without_an_event() -> None:
    row = after(timedelta(hours=1)).set(payments=one_more)

    assert counting(row).decide_deadline(Step.UNPAID, ACCOUNT, 0).data.payments == 2


def test_what_was_stored_is_read_and_not_computed_again() -> None:
    def never(data: Any, event: Any) -> int:
        raise AssertionError

    found = counting(STAY.set(amount=never))
    known = Account("O-1", Payment.CARD, amount=99, payments=7)

    decision = found.decide(Step.UNPAID, ACCOUNT, Paid(3, final=False), known=known)
    assert (decision.data.amount, decision.data.payments) == (99, 1)


def test_it_is_drawn_by_its_name_and_changes_the_fingerprint() -> None:
    row = STAY.set(amount=total, payments=one_more).issue(Pack)
    graph = counting(row).graph()
    [edge] = [edge for edge in graph.edges if edge.id == "e1"]

    assert edge.sets == ("amount = total", "payments = one more")
    assert edge.actions == ["amount = total", "payments = one more", "Pack"]
    assert str(row) == "Paid [final = no] / amount = total, payments = one more, Pack"
    assert Graph.from_json(graph.to_json()) == graph
    other = counting(STAY.set(amount=one_more, payments=one_more).issue(Pack))
    assert graph.fingerprint() != other.graph().fingerprint()


@cases(
    "given, reason",
    (lambda data, event: 1, "what sets 'amount' is a named function"),
    (int, "cannot be what sets 'amount': a function is needed"),
    (slowly, "slowly is asynchronous: what sets 'amount' is a plain function"),
    (bit_by_bit, "bit_by_bit yields: what sets 'amount' is a plain function"),
    (of_nothing, "of_nothing must take the data and the event"),
    (in_words, "what in_words returns does not fit the data's field 'amount'"),
)
def test_only_a_plain_named_function_may_give_it(given: Any, reason: str) -> None:
    found = refusal(unpaid=[STAY.set(amount=given), PAY], Data=Account)

    assert reason in found.reason


def test_of_a_computed_value_all_that_the_field_may_have_is_possible() -> None:
    def choose(data: Account, event: Any) -> Payment:
        return Payment.CASH

    pay = when(Paid).set(payment=choose).go_to(Step.PACKING)
    cash = when(Sent, payment=Payment.CASH).go_to(Step.DONE)
    others = when(Sent, payment=[Payment.CARD, Payment.INVOICE]).go_to(Step.DONE)

    assert define(unpaid=[pay], packing=[cash, others], Data=Account)
    refused = refusal(unpaid=[pay], packing=[cash], Data=Account)
    assert "a gap in Packing" in str(refused)


# Keeping


class Corrected(Event):
    order_id: int
    parcel: str


def test_a_field_that_is_kept_is_not_copied() -> None:
    found = define(packing=[SEND.keep("parcel")])
    data = Data("O-1", Payment.CARD, parcel="P-1")

    assert found.decide(Step.PACKING, data, Sent("P-2")).data == data


def test_a_kept_field_need_not_fit() -> None:
    row = when(Corrected).go_to(Step.DONE)

    assert "'order_id' does not fit" in str(refusal(packing=[row]))
    found = define(packing=[row.keep("order_id")])
    known = Data("O-1", Payment.CARD)
    decision = found.decide(Step.PACKING, known, Corrected(7, "P-1"))
    assert decision.data == Data("O-1", Payment.CARD, parcel="P-1")


@cases(
    "attributes, reason",
    # a row keeps only fields that it would copy
    ({"packing": [SEND.keep("gift")]}, "keeps 'gift', which is no field of both"),
    ({"packing": [SEND.keep("weight")]}, "keeps 'weight', which is no field of both"),
    ({"packing": [SEND.keep("parcel").set(parcel="x")]}, "keeps 'parcel' and sets it"),
    ({"packing": [ignore(Sent).keep("parcel")]}, "only a row that moves copies fields"),
    # a field that the start keeps needs another value
    ({"new": [START.keep("order_id")]}, "leaves the data's 'order_id' empty"),
    # a row that keeps all changes nothing
    ({"packing": [when(Sent).keep("parcel"), SEND]}, "it changes nothing"),
    ({"packing": [SEND.set(gift=True).set(gift=False)]}, "sets 'gift' twice"),
)
def test_what_is_not_kept_is_refused(attributes: dict[str, Any], reason: str) -> None:
    assert reason in str(refusal(**attributes))


# Values that others are in


class Label(Command):
    labels: list[str]
    size: tuple[int, int]


@dataclass(frozen=True)
class Labelled(Data):
    labels: list[str] = field(default_factory=list)
    size: tuple[int, int] = (0, 0)


def test_lists_and_tuples_can_be_set_and_fill_commands() -> None:
    row = when(Sent).set(labels=["fragile"], size=(3, 4)).issue(Label)
    found = define(packing=[row.go_to(Step.DONE)], Data=Labelled)

    decision = found.decide(Step.PACKING, Labelled("O-1", Payment.CARD), Sent("P-1"))
    assert decision.commands == (Label(["fragile"], (3, 4)),)
    assert reachable(found.graph(), "Packing", {"labels": ["x"]})[1] == {"e2"}


def test_they_must_fit_the_command_too() -> None:
    class Number(Command):
        labels: list[int]

    row = when(Sent).set(labels=["fragile"]).issue(Number).go_to(Step.DONE)

    assert "'labels' does not fit Number.labels" in str(
        refusal(packing=[row], Data=Labelled)
    )
