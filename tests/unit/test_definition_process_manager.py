"""Deciding: pure, and from nothing but the rows."""

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
    ignore,
    reject,
    stored,
    when,
)
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

    assert decision.outcome == "moved"
    assert (decision.step, decision.data) == (Step.UNPAID, Data("O-1", CARD))
    assert decision.entered


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


def test_fields_of_the_same_name_are_copied_into_the_data() -> None:
    decision = define().decide(Step.PACKING, DATA, Sent("P-1"))

    assert decision.data == Data("O-1", CARD, parcel="P-1")


def test_set_changes_fields_after_the_copy() -> None:
    shop = define(packing=[SEND.set(parcel="sent", gift=True)])

    assert shop.decide(Step.PACKING, DATA, Sent("P-1")).data == Data(
        "O-1", CARD, "sent", True
    )


def test_commands_see_the_data_as_it_is_after_the_row() -> None:
    shop = define(packing=[SEND.issue(Pack, order_id="parcel")])

    assert shop.decide(Step.PACKING, DATA, Sent("P-1")).commands == (Pack("P-1"),)


def test_commands_are_filled_from_the_event_where_the_data_has_no_such_field() -> None:
    shop = unpaid(when(Paid).issue(Refund).go_to(Step.PACKING))

    assert shop.decide(Step.UNPAID, DATA, Paid(3)).commands == (Refund(3),)


def test_several_commands_keep_their_order() -> None:
    shop = unpaid(when(Paid).issue(Refund, Pack).issue(Pack).go_to(Step.PACKING))

    decision = shop.decide(Step.UNPAID, DATA, Paid(3))
    assert decision.commands == (Refund(3), Pack("O-1"), Pack("O-1"))


class Write(Command):
    order_id: str
    greeting: str = "hello"


def test_a_commands_default_stands_where_nothing_fills_it() -> None:
    shop = unpaid(when(Paid).issue(Write).go_to(Step.PACKING))

    assert shop.decide(Step.UNPAID, DATA, Paid(3)).commands == (Write("O-1"),)


def test_a_row_may_stay_in_its_step() -> None:
    shop = unpaid(PAY, when(Returned).issue(Pack))

    decision = shop.decide(Step.UNPAID, DATA, Returned())
    assert (decision.step, decision.entered) == (Step.UNPAID, False)
    assert decision.timers == ()


def test_a_row_may_enter_its_own_step_again() -> None:
    shop = unpaid(PAY, when(Returned).go_to(Step.UNPAID), after(MINUTE).escalate())

    decision = shop.decide(Step.UNPAID, DATA, Returned())
    assert (decision.step, decision.entered) == (Step.UNPAID, True)
    assert decision.timers == (MINUTE,)


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
    shop = define(
        new=[
            when(Ordered, payment=CARD).go_to(Step.UNPAID),
            when(Ordered).go_to(Step.PACKING),
        ]
    )

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


def test_an_event_without_a_row_is_parked() -> None:
    decision = define().decide(Step.UNPAID, DATA, Sent("P-1"))

    assert (decision.outcome, decision.step, decision.data) == (
        "parked",
        Step.UNPAID,
        DATA,
    )
    assert decision.commands == ()


@pytest.mark.parametrize(
    ("row", "outcome"), [(ignore(Sent), "ignored"), (reject(Sent), "rejected")]
)
def test_a_disposition_takes_the_event_and_changes_nothing(
    row: Any, outcome: str
) -> None:
    decision = unpaid(PAY, row).decide(Step.UNPAID, DATA, Sent("P-1"))

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


def test_a_deadline_escalates() -> None:
    decision = waiting().decide_deadline(Step.UNPAID, DATA, 0)

    assert (decision.outcome, decision.escalates) == ("moved", True)
    assert (decision.step, decision.entered) == (Step.UNPAID, False)


def test_a_deadline_has_guards_and_issues_commands() -> None:
    by_cash = Data("O-1", CASH)

    assert waiting().decide_deadline(Step.UNPAID, DATA, 1).outcome == "ignored"
    assert waiting().decide_deadline(Step.UNPAID, by_cash, 1).commands == (Pack("O-1"),)


def test_a_deadline_goes_to_another_step() -> None:
    decision = waiting().decide_deadline(Step.UNPAID, DATA, 2)

    assert (decision.step, decision.entered) == (Step.PACKING, True)


# The pattern's two public methods


def test_it_can_handle_the_events_of_its_rows() -> None:
    class Stranger(Event):
        pass

    shop = unpaid(PAY, ignore(Returned))

    assert shop.can_handle(Paid(3))
    assert shop.can_handle(Returned())
    assert not shop.can_handle(Stranger())


def test_execute_hands_each_command_over_and_decides() -> None:
    issued: list[Command] = []
    process = define()(UUID(int=1), "Unpaid", DATA)

    decision = process.execute(Paid(3), issued.append)

    assert decision.step == Step.PACKING
    assert issued == [Pack("O-1")]


def test_execute_leaves_storing_to_its_caller() -> None:
    process = define()(UUID(int=1), "Unpaid", DATA)

    process.execute(Paid(3), lambda command: None)

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
    from orchestrator.definition import during

    shop = define(
        transitions=[
            during(Step.NEW, START),
            during(Step.UNPAID, PAY),
            during(Step.UNPAID, ignore(Sent)),
            during(Step.PACKING, SEND),
        ]
    )

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
