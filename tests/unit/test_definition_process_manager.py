"""Decisions are pure and follow from the rows alone."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    after,
    during,
    ignore,
    reject,
    stored,
    when,
)
from orchestrator.definition.declarations.transition_rows import TransitionRow
from tests.services.cases import cases
from tests.unit.shop import (
    PAY,
    SEND,
    START,
    Data,
    Ordered,
    Pack,
    Paid,
    Payment,
    Refund,
    Returned,
    Sent,
    Step,
    define,
)

CARD, CASH, INVOICE = Payment.CARD, Payment.CASH, Payment.INVOICE
DATA = Data("O-1", CARD)
MINUTE = timedelta(minutes=1)


def unpaid(*rows: Any) -> type[ProcessManager]:
    return define(unpaid=list(rows))


# Starting


def test_a_starting_event_fills_the_data() -> None:
    decision = define().decide(Step.NEW, None, Ordered("O-1", CARD))

    assert (decision.outcome, decision.entered) == ("moved", True)
    assert (decision.step, decision.data) == (Step.UNPAID, DATA)


def test_the_first_steps_events_start_it() -> None:
    shop = define(new=[START, reject(Sent)])

    assert shop.starting_events() == {"Ordered"}


def test_the_correlation_key_is_a_field_of_the_message() -> None:
    shop = define(correlation="order_id")

    assert shop.correlation_key(Ordered("O-1", CARD)) == "O-1"
    assert shop.correlation_key(Sent("P-1")) == ""
    assert define().correlation_key(Ordered("O-1", CARD)) == ""


def test_a_number_is_a_correlation_key_as_text() -> None:
    shop = define(new=[START.set(payment=CARD)], correlation="order_id")

    assert shop.correlation_key(Paid(3)) == ""
    assert shop.correlation_key(type("Numbered", (), {"order_id": 7})()) == "7"
    assert shop.correlation_key(type("Empty", (), {"order_id": None})()) == ""


# Moving


def test_a_row_moves_the_process_and_issues_its_commands() -> None:
    decision = define().decide(Step.UNPAID, DATA, Paid(3))

    assert (decision.outcome, decision.step) == ("moved", Step.PACKING)
    assert decision.commands == (Pack("O-1"),)
    assert decision.data is DATA


@cases(
    "row, data, commands",
    # fields of the same name are copied into the data
    (SEND, Data("O-1", CARD, "P-1"), ()),
    # and set changes them after the copy
    (SEND.set(parcel="sent", gift=True), Data("O-1", CARD, "sent", True), ()),
    # commands see the data as it is after the row
    (SEND.issue(Pack, order_id="parcel"), *(Data("O-1", CARD, "P-1"), (Pack("P-1"),))),
)
def test_a_row_changes_the_data(row: TransitionRow, data: Data, commands: Any) -> None:
    decision = define(packing=[row]).decide(Step.PACKING, DATA, Sent("P-1"))

    assert (decision.data, decision.commands) == (data, commands)


class Write(Command):
    order_id: str
    greeting: str = "hello"


@cases(
    "row, commands",
    # from the event where the data has no such field
    (when(Paid).issue(Refund), (Refund(3),)),
    # several keep their order
    (when(Paid).issue(Refund, Pack).issue(Pack), (Refund(3), Pack("O-1"), Pack("O-1"))),
    # a default stands where nothing fills it
    (when(Paid).issue(Write), (Write("O-1"),)),
)
def test_commands_are_filled(row: TransitionRow, commands: tuple[Command, ...]) -> None:
    shop = unpaid(row.go_to(Step.PACKING))

    assert shop.decide(Step.UNPAID, DATA, Paid(3)).commands == commands


@cases(
    "row, entered, timers",
    (when(Returned).issue(Pack), False, ()),
    (when(Returned).go_to(Step.UNPAID), True, (MINUTE,)),
)
def test_a_row_may_stay_in_its_step_or_enter_it_again(
    row: TransitionRow, entered: bool, timers: tuple[timedelta, ...]
) -> None:
    shop = unpaid(PAY, row, after(MINUTE).escalate())

    decision = shop.decide(Step.UNPAID, DATA, Returned())
    assert (decision.step, decision.entered) == (Step.UNPAID, entered)
    assert decision.timers == timers


# Guards


def test_a_guard_looks_at_the_data() -> None:
    shop = unpaid(
        when(Paid, payment=[CARD, CASH]).go_to(Step.PACKING),
        when(Paid, payment=INVOICE).go_to(Step.DONE),
    )

    assert shop.decide(Step.UNPAID, DATA, Paid(3)).step == Step.PACKING
    by_invoice = Data("O-1", INVOICE)
    assert shop.decide(Step.UNPAID, by_invoice, Paid(3)).step == Step.DONE


def test_a_guard_looks_at_the_event_first() -> None:
    by_card = when(Ordered, payment=CARD).go_to(Step.UNPAID)
    shop = define(new=[by_card, when(Ordered).go_to(Step.PACKING)])

    assert shop.decide(Step.NEW, None, Ordered("O-1", CASH)).step == Step.PACKING


def test_an_answer_to_the_present_request_matches() -> None:
    shop = define(packing=[when(Sent, parcel=stored("parcel")).go_to(Step.DONE)])
    data = Data("O-1", CARD, parcel="P-2")

    assert shop.decide(Step.PACKING, data, Sent("P-2")).outcome == "moved"
    assert shop.decide(Step.PACKING, data, Sent("P-1")).outcome == "parked"


def large_amount(data: Data, event: Paid) -> bool:
    return event.amount > 100


def test_a_named_condition_decides() -> None:
    shop = unpaid(when(Paid, large_amount).go_to(Step.DONE), PAY)

    assert shop.decide(Step.UNPAID, DATA, Paid(101)).step == Step.DONE
    assert shop.decide(Step.UNPAID, DATA, Paid(100)).step == Step.PACKING


# What does not move it


@cases(
    "rows, outcome",
    ([PAY], "parked"),
    ([PAY, ignore(Sent)], "ignored"),
    ([PAY, reject(Sent)], "rejected"),
)
def test_what_stays_changes_nothing(rows: list[TransitionRow], outcome: str) -> None:
    decision = unpaid(*rows).decide(Step.UNPAID, DATA, Sent("P-1"))

    assert decision.outcome == outcome
    assert (decision.step, decision.data, decision.commands) == (Step.UNPAID, DATA, ())


def test_a_disposition_may_stand_behind_guarded_rows() -> None:
    shop = unpaid(when(Paid, final=True).go_to(Step.PACKING), ignore(Paid))

    assert shop.decide(Step.UNPAID, DATA, Paid(3, final=False)).outcome == "ignored"


def test_nothing_moves_an_ended_process() -> None:
    assert define().decide(Step.DONE, DATA, Paid(3)).outcome == "parked"


# Deadlines


def waiting() -> type[ProcessManager]:
    return unpaid(
        PAY,
        after(3 * MINUTE).issue(Pack).go_to(Step.PACKING),
        after(MINUTE).escalate(),
        after(2 * MINUTE, payment=CASH).issue(Pack),
    )


def test_entering_a_step_sets_its_deadlines_shortest_first() -> None:
    decision = waiting().decide(Step.NEW, None, Ordered("O-1", CARD))

    assert decision.timers == (MINUTE, 2 * MINUTE, 3 * MINUTE)


@cases(
    "data, number, outcome, target, escalates, commands",
    # one escalates and stays in its step
    (DATA, 0, "moved", Step.UNPAID, True, ()),
    # one has guards and issues commands
    (DATA, 1, "ignored", Step.UNPAID, False, ()),
    (Data("O-1", CASH), 1, "moved", Step.UNPAID, False, (Pack("O-1"),)),
    # one goes to another step
    (DATA, 2, "moved", Step.PACKING, False, (Pack("O-1"),)),
)
def test_deadlines_escalate_and_decide_as_events_do(
    data: Data, number: int, outcome: str, target: Step, escalates: bool, commands: Any
) -> None:
    decision = waiting().decide_deadline(Step.UNPAID, data, number)

    assert (decision.outcome, decision.escalates) == (outcome, escalates)
    assert (decision.step, decision.commands) == (target, commands)
    assert decision.entered is (target == Step.PACKING)


# The pattern's two public methods


def test_it_can_handle_the_events_of_its_rows() -> None:
    class Stranger(Event):
        pass

    shop = unpaid(PAY, ignore(Returned))

    assert shop.can_handle(Paid(3))
    assert shop.can_handle(Returned())
    assert not shop.can_handle(Stranger())


def test_execute_hands_each_command_over_and_leaves_storing_to_its_caller() -> None:
    issued: list[Command] = []
    process = define()(UUID(int=1), "Unpaid", DATA)

    decision = process.execute(Paid(3), issued.append)

    assert (decision.step, issued) == (Step.PACKING, [Pack("O-1")])
    assert (process.step, process.data) == (Step.UNPAID, DATA)


def test_a_command_that_fails_lets_the_decision_fail() -> None:
    def fail(command: Command) -> None:
        raise RuntimeError("no boxes")

    with pytest.raises(RuntimeError, match="no boxes"):
        define()(UUID(int=1), "Unpaid", DATA).execute(Paid(3), fail)


def test_a_deadline_is_executed_the_same_way() -> None:
    issued: list[Command] = []
    process = waiting()(UUID(int=1), "Unpaid", DATA)

    process.execute_deadline(2, issued.append)

    assert issued == [Pack("O-1")]


def test_deciding_twice_gives_the_same() -> None:
    shop = define()

    first = shop.decide(Step.PACKING, DATA, Sent("P-1"))
    assert first == shop.decide(Step.PACKING, DATA, Sent("P-1"))
    assert Data("O-1", CARD) == DATA


# Names


def test_the_name_is_that_of_the_class_with_hyphens() -> None:
    assert define(name="").name == "shop"
    assert define(name="my-shop").name == "my-shop"


def test_final_steps_can_be_named() -> None:
    shop = define(unpaid=[PAY, when(Returned).go_to(Step.PACKING)], final=[Step.DONE])

    assert shop.finals == {Step.DONE}


def test_groups_of_one_step_add_up() -> None:
    unpaid = during(Step.UNPAID, PAY), during(Step.UNPAID, ignore(Sent))
    groups = [during(Step.NEW, START), *unpaid, during(Step.PACKING, SEND)]
    shop = define(transitions=groups)

    assert [row.trigger for row in shop.rows[Step.UNPAID]] == [Paid, Sent]


def test_a_class_between_shares_attributes_and_is_no_definition() -> None:
    class Patient(ProcessManager):
        patience = 5 * MINUTE

    assert not hasattr(Patient, "rows")


def test_a_summary_is_empty_until_written() -> None:
    @dataclass(frozen=True)
    class Named(Data):
        pass

    assert define(Data=Named).summary(Named("O-1", CARD)) == ""
