"""The import refuses every mistake in a definition, with class, row and reason."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from functools import partial
from socket import socket
from typing import Any
from uuid import UUID

from orchestrator.definition import (
    Command,
    Event,
    after,
    during,
    ignore,
    reject,
    stored,
    when,
)
from orchestrator.definition.declarations import outside_ids
from orchestrator.definition.declarations.process_definition import ProcessDefinition
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
    refusal,
    said_of,
)

HOUR = timedelta(hours=1)
PAID, SENT = when(Paid).go_to(Step.PACKING), when(Sent).go_to(Step.DONE)


async def slowly(data: Any) -> str:
    return ""


def bit_by_bit(data: Any, event: Any) -> Any:
    yield True


def of_one(event: Any) -> bool:
    return True


class Elsewhere(StrEnum):
    MOON = "Moon"


def test_the_shop_without_a_mistake_is_taken() -> None:
    shop = define()

    assert shop.name == "shop"
    assert str(shop.first) == "New"
    assert set(map(str, shop.finals)) == {"Done"}


# The class and its graph


class Steps(Enum):
    NEW = "New"
    DONE = "Done"


class OneStep(StrEnum):
    NEW = "New"


class Plain:
    order_id: str


NO_STEPS = "declare `class Step(StrEnum)` with at least a first and a final step"
NOT_A_STEP = "<Elsewhere.MOON: 'Moon'> is not one of its steps"


@cases(
    "reason, attributes",
    *((NO_STEPS, {"Step": steps}) for steps in (None, Steps, OneStep, "New")),
    ("declare `Data` as a dataclass", {"Data": Plain}),
    (f"Packing holds {Sent!r}, which is not a row", {"packing": [Sent]}),
    (NOT_A_STEP, {"transitions": [during(Elsewhere.MOON, START)]}),
    ("no event starts it: New has no rows", {"new": []}),
    ("the correlation field 'colour' is not in its data", {"correlation": "colour"}),
    ("Packing can never be reached", {"unpaid": [when(Paid).go_to(Step.DONE)]}),
    (
        "Packing is a dead end: no final step can be reached from it",
        {"unpaid": [PAID, SENT], "packing": [PAID]},
    ),
)
def test_a_class_is_refused(reason: str, attributes: dict[str, Any]) -> None:
    assert str(refusal(**attributes)) == f"Shop: {reason}"


class Locked(Event):
    lock: socket


class Guarded(Command):
    lock: socket | None = None


@dataclass(frozen=True)
class LockedData(Data):
    lock: socket | None = None


NO_JSON = "cannot be written as JSON: "


@cases(
    "reason, attributes",
    ("transitions must be during(...) groups, not", {"transitions": [7]}),
    ("is not one of its steps", {"final": [Elsewhere.MOON]}),
    *(
        ("letters, digits", {"name": name})
        for name in ("two words", "slash/ed", "ümlaut", "x" * 101)
    ),
    *(("version", {"version": version}) for version in (0, -1, "2", 1.5, True)),
    (f"Shop: Locked {NO_JSON}", {"packing": [SEND, when(Locked).go_to(Step.DONE)]}),
    (f"Shop: Guarded {NO_JSON}", {"packing": [SEND.issue(Guarded)]}),
    (f"Shop: LockedData {NO_JSON}", {"Data": LockedData}),
    ("otherwise=[1]: it must be park, ignore or reject", {"otherwise": [1]}),
    ("the queue None must be the name of a queue", {"queue": None}),
    ("the patience 60 must be 0 or a timedelta", {"patience": 60}),
    ("must be 0 or a timedelta of more than 0", {"patience": -HOUR}),
    ("summary is asynchronous", {"summary": staticmethod(slowly)}),
)
def test_attributes_can_be_used(reason: str, attributes: dict[str, Any]) -> None:
    assert reason in str(refusal(**attributes))


def test_nothing_happens_in_a_final_step() -> None:
    refused = refusal(final=[Step.PACKING, Step.DONE])

    assert str(refused) == said_of(SEND, "Packing is final: nothing can happen in it")


# Rows


class Numbered(Event):
    parcel: int


Told = dict[str, list[Any]]
"""Reasons, and the rows that are refused with each."""

NO_FIELD = "neither the event nor the data has a field"
NOT_ITS_TYPE = ", which is not its type"
UNFILLED = "cannot be filled: neither data nor event has"
TO_UNPAID, NUMBERED = when(Sent).go_to(Step.UNPAID), when(Numbered).go_to(Step.DONE)
AT_ONCE, LATE = after(timedelta(0)).escalate(), after(HOUR).go_to(Step.UNPAID)
TWIN = when(type("Paid", (Event,), {"__module__": __name__})).go_to(Step.DONE)

OF_NEW: Told = {
    "New is never waited in: put the deadline on a later step": [LATE],
    "a row of New must go to a step": [when(Ordered)],
    f"{NO_FIELD} 'colour'": [when(Ordered, colour="red").go_to(Step.UNPAID)],
    # before the start there is no data to look at
    f"{NO_FIELD} 'gift'": [when(Ordered, gift=True).go_to(Step.UNPAID)],
    "starts a process but leaves the data's 'order_id' empty": [TO_UNPAID],
}

OF_UNPAID: Told = {
    "a deadline must lie in the future": [after(-HOUR).escalate(), AT_ONCE],
    "it changes nothing; write ignore(...) if that is meant": [when(Returned)],
    f"{NO_FIELD} 'colour'": [when(Paid, colour="red").go_to(Step.UNPAID)],
    "the guard on 'final' accepts nothing": [when(Paid, final=[]).go_to(Step.PACKING)],
    "'payment' can never be 'cheque'": [when(Paid, payment="cheque").go_to(Step.DONE)],
    "'amount' can never be 'much'": [when(Paid, amount="much").go_to(Step.DONE)],
    "'gift' can never be 3": [when(Paid, gift=3).go_to(Step.DONE)],
    "sets 'colour', which the data does not have": [when(Returned).set(colour="red")],
    f"sets 'payment' to 'cheque'{NOT_ITS_TYPE}": [when(Returned).set(payment="cheque")],
    f"sets 'parcel' to 3{NOT_ITS_TYPE}": [when(Returned).set(parcel=3)],
    f"sets 'gift' to 'yes'{NOT_ITS_TYPE}": [when(Returned).set(gift="yes")],
    f"Pack.order_id {UNFILLED} 'colour'": [PAID.issue(Pack, order_id="colour")],
    "Pack has no field 'colour' to fill": [PAID.issue(Pack, colour="parcel")],
    "rows for this event after it would never be tried": [ignore(Paid), reject(Paid)],
}

OF_PACKING: Told = {
    NOT_A_STEP: [when(Sent).go_to(Elsewhere.MOON)],
    "it goes to Unpaid and to Done: a row has one .go_to": [
        TO_UNPAID.issue(Pack).go_to(Step.DONE)
    ],
    "it goes to Done and to Done: a row has one .go_to": [SENT.go_to(Step.DONE)],
    "the event's 'parcel' does not fit the data's field of that name": [NUMBERED],
    f"Refund.amount {UNFILLED} 'amount'": [SENT.issue(Refund)],
    "'parcel' does not fit Refund.amount": [SENT.issue(Refund, amount="parcel")],
    "two message classes have the name Paid": [TWIN],
}

OF_STEPS = {"new": OF_NEW, "unpaid": OF_UNPAID, "packing": OF_PACKING}


@cases(
    "step, row, reason",
    *(
        (step, row, reason)
        for step, told in OF_STEPS.items()
        for reason, rows in told.items()
        for row in rows
    ),
)
def test_a_row_is_refused_with_its_reason(step: str, row: Any, reason: str) -> None:
    right = {"new": START, "unpaid": PAY, "packing": SEND}[step]

    assert str(refusal(**{step: [row, right]})) == said_of(row, reason)


UNNAMED = "conditions are named functions, so that the diagram can name them"


@cases(
    "row, reason",
    *(
        (when(trigger).go_to(Step.PACKING), f"{trigger!r} is not an Event class")  # type: ignore[arg-type]  # the mistake
        for trigger in (Pack, "Paid", Paid(3), None, int)
    ),
    *(
        (PAID.issue(command), f"{command!r} is not a Command class")  # type: ignore[arg-type]  # the mistake
        for command in (Paid, "Pack", Pack("O-1"))
    ),
    (when(Paid, lambda data, event: True).go_to(Step.PACKING), UNNAMED),
    (when(Paid, partial(max, 1)).go_to(Step.PACKING), UNNAMED),
)
def test_what_a_row_is_made_of_has_the_right_kind(row: Any, reason: str) -> None:
    assert refusal(unpaid=[row, PAY]).reason == reason


NO_TELLING = "'{}' is no name of a recipient: it has up to 50 letters, and is not blank, without control"
NO_PERSON = "'{}' is no name of a person: it has up to 150 letters, and is not blank, without control"
BOTH_SIDES = "needs that field in the event and in the data"


@cases(
    "row, reason",
    (when(Sent, parcel=stored("colour")).go_to(Step.DONE), BOTH_SIDES),
    (when(Sent, order_id=stored("order_id")).go_to(Step.DONE), BOTH_SIDES),
    (after(timedelta.max).go_to(Step.DONE), "and at most 1,000 years"),
    (
        when(Sent, bit_by_bit).go_to(Step.DONE),
        "bit_by_bit yields: a condition is a plain function",
    ),
    (
        when(Sent, of_one).go_to(Step.DONE),  # type: ignore[arg-type]  # the mistake
        "of_one must take the data and the event",
    ),
    # recipients
    (PAID.notify("duty"), "only a deadline notifies: begin the row with after(...)"),
    (after(HOUR).notify("duty", "duty"), "notifies 'duty' twice"),
    (after(HOUR).notify(""), NO_TELLING.format("")),
    (after(HOUR).notify("a\nb"), NO_TELLING.format("a\\nb")),
    # owners
    (PAID.assign("duty"), "only a deadline assigns: begin the row with after(...)"),
    (after(HOUR).assign(" "), NO_PERSON.format(" ")),
    (after(HOUR).assign("a\nb"), NO_PERSON.format("a\\nb")),
    (
        ignore(Paid).assign("duty"),
        "only a row that moves sets fields, issues commands, escalates, notifies, assigns or goes to a step",
    ),
)
def test_what_a_row_asks_for_can_be_done(row: Any, reason: str) -> None:
    refused = refusal(packing=[SEND, row])

    assert refused.row == str(row)
    assert reason in refused.reason


def test_a_start_may_fill_the_data_by_setting_it() -> None:
    row = when(Sent).set(order_id="?", payment=Payment.CASH).go_to(Step.UNPAID)

    assert define(new=[START, row]).starting_events() == {"Ordered", "Sent"}


@cases(
    "row, notifies, owner",
    (after(HOUR).notify("duty"), ("duty",), None),
    (after(HOUR).assign("night-shift"), (), "night-shift"),
)
def test_a_deadline_may_have_people_told_or_give_the_process_away_and_nothing_else(
    row: TransitionRow, notifies: tuple[str, ...], owner: str | None
) -> None:
    edges = define(packing=[SEND, row]).graph().edges

    [edge] = [edge for edge in edges if edge.kind == "deadline"]
    assert (edge.notifies, edge.owner or None) == (notifies, owner)
    assert (edge.source, edge.target) == ("Packing", "Packing")


# Outside ids


def of_outside_ids(names: object, **fields: Any) -> str:
    form: Any = dataclass(frozen=True)(
        type("Form", (), {"__annotations__": {"order_id": str, **fields}})
    )
    cls: Any = type("Shop", (ProcessDefinition,), {"outside_ids": names})
    return "; ".join(outside_ids.identity_mistakes(cls, form, "data", ()))


def test_s10_1_outside_ids_are_fields_of_the_data() -> None:
    shop = define(outside_ids=("order_id",))

    assert shop.outside_ids == ("order_id",)
    assert str(refusal(outside_ids=("order",))) == (
        "Shop: the outside id 'order' is not in its data: did you mean 'order_id'?"
    )
    assert str(refusal(outside_ids=("moon",))) == (
        "Shop: the outside id 'moon' is not in its data"
    )


def test_s10_1_outside_ids_are_a_sequence_of_names() -> None:
    for names in ("order_id", 3, None, {"order_id"}):
        assert of_outside_ids(names) == (
            'outside_ids holds names of fields: outside_ids = ("parcel",)'
        )


@cases("kind", bool, float, datetime, dict[str, str], Any, list)
def test_s10_1_what_cannot_be_looked_for_is_no_outside_id(kind: Any) -> None:
    assert "'it' cannot be looked for by its value" in of_outside_ids(("it",), it=kind)


@cases(
    "kind",
    *(str, int, UUID, Step, str | None),
    *(list[str], tuple[int, ...], list[UUID] | None),
)
def test_s10_1_texts_numbers_and_lists_of_them_are_outside_ids(kind: Any) -> None:
    assert of_outside_ids(("it", "order_id"), it=kind) == ""
