"""The rows for one event in one step cover every possible case once."""

from typing import Any, Literal

from orchestrator.definition import Event, stored, when
from orchestrator.definition.declarations.transition_rows import TransitionRow
from tests.services.cases import cases
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


TO_ADD = "add a row, a last one without a guard, park(...), ignore(...) or reject(...)"
BY_CARD, BY_CASH, ANY_WAY = paid(payment=CARD), paid(payment=CASH), paid()
LARGE = when(Paid, large_amount).go_to(Step.PACKING)
GIFT = when(Paid, is_gift, payment=CARD).go_to(Step.PACKING)
NOT_BY_INVOICE = [
    when(Ordered, payment=[CARD, CASH]).go_to(Step.UNPAID),
    when(Ordered, payment=INVOICE).go_to(Step.PACKING),
]
ALWAYS_CASH = [START.set(payment=CASH)]


class Changed(Event):
    payment: Payment


class Rated(Event):
    stars: Literal[1, 2, 3]


@cases(
    "unpaid, reason",
    (
        [BY_CARD, BY_CASH],
        f"a gap in Unpaid: no row takes Paid when payment = invoice; {TO_ADD}",
    ),
    (
        [paid(payment=[CARD, CASH]), paid(payment=[CASH, INVOICE])],
        f"overlaps with {str(paid(payment=[CARD, CASH]))!r} when payment = cash",
    ),
    # no row comes after a row that takes every case
    (
        [ANY_WAY, BY_CARD],
        f"never tried: the row {str(ANY_WAY)!r} before it takes every case",
    ),
    # values that cannot be listed need a last row
    (
        [paid(amount=100)],
        f"a gap in Unpaid: no row takes Paid when values that cannot be listed; {TO_ADD}",
    ),
)
def test_gaps_and_overlaps_are_named(unpaid: list[TransitionRow], reason: str) -> None:
    assert str(refusal(unpaid=unpaid)) == said_of(unpaid[-1], reason)


@cases(
    "attributes, reason",
    # rows with guards on two fields are checked together
    ({"unpaid": [BY_CARD, paid(final=True), ANY_WAY]}, "overlaps with"),
    (
        {"unpaid": [BY_CARD, paid(payment=[CASH, INVOICE], final=True)]},
        "when payment = cash, final = no",
    ),
    # what a loop changes counts too
    (
        {"new": ALWAYS_CASH, "unpaid": [when(Returned).set(payment=CARD), BY_CASH]},
        "no row takes Paid when payment = card",
    ),
    # a field of the event goes before that of the data
    (
        {
            "new": ALWAYS_CASH,
            "unpaid": [when(Changed, payment=CASH).go_to(Step.PACKING), ANY_WAY],
        },
        "no row takes Changed when payment = card",
    ),
    # named conditions need a last row
    (
        {"unpaid": [LARGE]},
        "a gap in Unpaid: no row takes Paid when its predicates do not hold",
    ),
    # a literal and a yes or no list their values
    (
        {
            "unpaid": [
                *(when(Rated, stars=stars).go_to(Step.PACKING) for stars in (1, 2)),
                ANY_WAY,
            ]
        },
        "no row takes Rated when stars = 3",
    ),
    ({"unpaid": [paid(final=True)]}, "no row takes Paid when final = no"),
    # a default counts as what can occur
    ({"unpaid": [paid(gift=True), ANY_WAY]}, "its guard can never hold"),
)
def test_what_nobody_takes_is_refused(attributes: dict[str, Any], reason: str) -> None:
    assert reason in str(refusal(**attributes))


@cases(
    "attributes",
    {"unpaid": [BY_CARD, paid(payment=[CASH, INVOICE])]},
    # a last row without a guard takes the rest
    {"unpaid": [BY_CARD, ANY_WAY]},
    {"unpaid": [paid(amount=100), ANY_WAY]},
    {"unpaid": [LARGE, ANY_WAY]},
    # a case that cannot occur leaves no gap
    {"new": NOT_BY_INVOICE, "unpaid": [BY_CARD, BY_CASH]},
    # values that a row sets and defaults are possible values
    {"new": ALWAYS_CASH, "unpaid": [BY_CASH]},
    {"unpaid": [paid(gift=False)]},
    # named conditions are tried in order and may overlap
    {"unpaid": [LARGE, GIFT, ANY_WAY]},
    # a stale answer may be parked
    {"packing": [when(Sent, parcel=stored("parcel")).go_to(Step.DONE)]},
)
def test_rows_that_take_every_case_are_taken(attributes: dict[str, Any]) -> None:
    shop = define(**attributes)

    expected = attributes.get("unpaid", [])
    assert len(shop.rows_for(Step.UNPAID, Paid)) == (len(expected) or 1)


def test_a_guard_that_can_never_hold_is_refused() -> None:
    never = paid(payment=INVOICE)

    assert str(refusal(new=NOT_BY_INVOICE, unpaid=[never, ANY_WAY])) == said_of(
        never, "its guard can never hold: the data never has these values here"
    )


def test_more_cases_than_can_be_tried_need_a_last_row() -> None:
    fields = [f"f{n}" for n in range(14)]
    body = {"__module__": __name__, "__annotations__": dict.fromkeys(fields, bool)}
    many = type("Many", (Event,), body)
    only = when(many, **dict.fromkeys(fields, True)).go_to(Step.DONE)

    assert "values that cannot be listed" in str(refusal(packing=[SEND, only]))
