"""The rows for one event in one step take every case that can occur, and none twice."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from orchestrator.definition import Event, stored, when
from tests.unit.shop import (
    SEND,
    START,
    Ordered,
    Paid,
    Payment,
    Returned,
    Sent,
    Step,
    define,
    refusal,
    said_of,
)

CARD, CASH, INVOICE = Payment.CARD, Payment.CASH, Payment.INVOICE


def paid(**guards: Any) -> Any:
    return when(Paid, **guards).go_to(Step.PACKING)


def large_amount(data: Any, event: Paid) -> bool:
    return event.amount > 100


def is_gift(data: Any, event: Paid) -> bool:
    return bool(data.gift)


def test_rows_that_split_every_value_are_taken() -> None:
    shop = define(unpaid=[paid(payment=CARD), paid(payment=[CASH, INVOICE])])

    assert len(shop.rows_for(Step.UNPAID, Paid)) == 2


def test_a_gap_is_named_with_the_case_that_nobody_takes() -> None:
    last = paid(payment=CASH)

    assert str(refusal(unpaid=[paid(payment=CARD), last])) == said_of(
        last,
        "a gap in Unpaid: no row takes Paid when payment = invoice; "
        "add a row, a last one without a guard, park(...), ignore(...) or reject(...)",
    )


def test_a_last_row_without_a_guard_takes_the_rest() -> None:
    define(unpaid=[paid(payment=CARD), paid()])


def test_an_overlap_is_named_with_both_rows() -> None:
    first, second = paid(payment=[CARD, CASH]), paid(payment=[CASH, INVOICE])

    assert str(refusal(unpaid=[first, second])) == said_of(
        second, f"overlaps with {str(first)!r} when payment = cash"
    )


def test_rows_on_two_fields_are_looked_at_together() -> None:
    first, second = paid(payment=CARD), paid(final=True)

    assert "overlaps with" in str(refusal(unpaid=[first, second, paid()]))


def test_a_gap_on_two_fields_names_both() -> None:
    last = paid(payment=[CASH, INVOICE], final=True)

    assert "when payment = cash, final = no" in str(
        refusal(unpaid=[paid(payment=CARD), last])
    )


def test_no_row_stands_behind_one_that_takes_every_case() -> None:
    later = paid(payment=CARD)

    assert str(refusal(unpaid=[paid(), later])) == said_of(
        later, f"never tried: the row {str(paid())!r} before it takes every case"
    )


def test_a_case_that_cannot_occur_leaves_no_gap() -> None:
    start = when(Ordered, payment=[CARD, CASH]).go_to(Step.UNPAID)
    other = when(Ordered, payment=INVOICE).go_to(Step.PACKING)

    define(new=[start, other], unpaid=[paid(payment=CARD), paid(payment=CASH)])


def test_a_guard_that_can_never_hold_is_refused() -> None:
    start = when(Ordered, payment=[CARD, CASH]).go_to(Step.UNPAID)
    other = when(Ordered, payment=INVOICE).go_to(Step.PACKING)
    never = paid(payment=INVOICE)

    assert str(refusal(new=[start, other], unpaid=[never, paid()])) == said_of(
        never, "its guard can never hold: the data never has these values here"
    )


def test_what_a_row_sets_counts_as_what_can_occur() -> None:
    start = START.set(payment=CASH)

    define(new=[start], unpaid=[paid(payment=CASH)])


def test_what_a_loop_changes_counts_too() -> None:
    start = START.set(payment=CASH)
    changed = when(Returned).set(payment=CARD)
    only_cash = paid(payment=CASH)

    assert "no row takes Paid when payment = card" in str(
        refusal(new=[start], unpaid=[changed, only_cash])
    )


def test_a_field_of_the_event_goes_before_that_of_the_data() -> None:
    class Changed(Event):
        payment: Payment

    start = START.set(payment=CASH)
    changed = when(Changed, payment=CASH).go_to(Step.PACKING)

    assert "no row takes Changed when payment = card" in str(
        refusal(new=[start], unpaid=[changed, paid()])
    )


def test_values_that_cannot_be_listed_need_a_last_row() -> None:
    only = paid(amount=100)

    assert str(refusal(unpaid=[only])) == said_of(
        only,
        "a gap in Unpaid: no row takes Paid when values that cannot be listed; "
        "add a row, a last one without a guard, park(...), ignore(...) or reject(...)",
    )
    define(unpaid=[only, paid()])


def test_named_conditions_need_a_last_row() -> None:
    only = when(Paid, large_amount).go_to(Step.PACKING)

    assert "a gap in Unpaid: no row takes Paid when its predicates do not hold" in str(
        refusal(unpaid=[only])
    )
    define(unpaid=[only, paid()])


def test_named_conditions_are_tried_in_order_and_may_overlap() -> None:
    define(
        unpaid=[
            when(Paid, large_amount).go_to(Step.PACKING),
            when(Paid, is_gift, payment=CARD).go_to(Step.PACKING),
            paid(),
        ]
    )


def test_a_stale_answer_may_be_left_to_be_parked() -> None:
    define(packing=[when(Sent, parcel=stored("parcel")).go_to(Step.DONE)])


def test_a_literal_lists_its_values() -> None:
    class Rated(Event):
        stars: Literal[1, 2, 3]

    rows = [when(Rated, stars=stars).go_to(Step.PACKING) for stars in (1, 2)]

    assert "no row takes Rated when stars = 3" in str(refusal(unpaid=[*rows, paid()]))


def test_a_yes_or_no_lists_both() -> None:
    assert "no row takes Paid when final = no" in str(
        refusal(unpaid=[paid(final=True)])
    )


@pytest.mark.parametrize("gift", [True, False])
def test_a_default_counts_as_what_can_occur(gift: bool) -> None:
    row = paid(gift=gift)

    if gift:
        assert "its guard can never hold" in str(refusal(unpaid=[row, paid()]))
    else:
        define(unpaid=[row])


def test_more_cases_than_can_be_tried_need_a_last_row() -> None:
    @dataclass(frozen=True)
    class Wide:
        order_id: str
        payment: Payment
        parcel: str = ""
        gift: bool = False

    fields = [f"f{n}" for n in range(14)]
    many = type(
        "Many",
        (Event,),
        {"__module__": __name__, "__annotations__": dict.fromkeys(fields, bool)},
    )
    only = when(many, **dict.fromkeys(fields, True)).go_to(Step.DONE)

    assert "values that cannot be listed" in str(
        refusal(packing=[SEND, only], Data=Wide)
    )
