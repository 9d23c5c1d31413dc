"""Every mistake in a definition is refused at import, with class, row and reason. One rule a test."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from functools import partial
from socket import socket
from typing import Any
from uuid import UUID

import pytest

from orchestrator.definition import (
    Command,
    Event,
    after,
    ignore,
    outside_ids,
    reject,
    stored,
    when,
)
from orchestrator.definition.process_manager.rows import TransitionRow
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


# The class


class Steps(Enum):
    NEW = "New"
    DONE = "Done"


class OneStep(StrEnum):
    NEW = "New"


@pytest.mark.parametrize("steps", [None, Steps, OneStep, "New"])
def test_steps_are_a_str_enum_of_two_or_more(steps: object) -> None:
    refused = refusal(Step=steps)

    assert str(refused) == (
        "Shop: declare `class Step(StrEnum)` with at least a first and a final step"
    )


class Plain:
    order_id: str


def test_data_is_a_dataclass() -> None:
    assert str(refusal(Data=Plain)) == "Shop: declare `Data` as a dataclass"


def test_transitions_are_groups() -> None:
    assert "transitions must be during(...) groups, not" in str(
        refusal(transitions=[7])
    )


def test_groups_hold_rows() -> None:
    assert str(refusal(packing=[Sent])) == (
        f"Shop: Packing holds {Sent!r}, which is not a row"
    )


def test_a_group_is_of_one_of_its_own_steps() -> None:
    from orchestrator.definition import during

    groups = [during(Elsewhere.MOON, START)]

    assert str(refusal(transitions=groups)) == (
        "Shop: <Elsewhere.MOON: 'Moon'> is not one of its steps"
    )


def test_a_final_step_is_one_of_its_own() -> None:
    assert "is not one of its steps" in str(refusal(final=[Elsewhere.MOON]))


def test_nothing_happens_in_a_final_step() -> None:
    refused = refusal(final=[Step.PACKING, Step.DONE])

    assert str(refused) == said_of(SEND, "Packing is final: nothing can happen in it")


@pytest.mark.parametrize("name", ["two words", "slash/ed", "ümlaut", "x" * 101])
def test_a_name_fits_into_an_address(name: str) -> None:
    assert "letters, digits" in str(refusal(name=name))


@pytest.mark.parametrize("version", [0, -1, "2", 1.5, True])
def test_a_version_counts_from_one(version: object) -> None:
    assert "version" in str(refusal(version=version))


# Triggers


@pytest.mark.parametrize("delay", [timedelta(0), -HOUR])
def test_a_deadline_lies_in_the_future(delay: timedelta) -> None:
    row = after(delay).escalate()

    assert str(refusal(unpaid=[PAY, row])) == said_of(
        row, "a deadline must lie in the future"
    )


def test_the_first_step_has_no_deadline() -> None:
    row = after(HOUR).go_to(Step.UNPAID)

    assert str(refusal(new=[START, row])) == said_of(
        row, "New is never waited in: put the deadline on a later step"
    )


@pytest.mark.parametrize("trigger", [Pack, "Paid", Paid(3), None, int])
def test_a_row_waits_for_an_event(trigger: Any) -> None:
    refused = refusal(unpaid=[PAY, when(trigger).go_to(Step.PACKING)])

    assert refused.reason == f"{trigger!r} is not an Event class"


# Targets


def test_a_row_goes_to_one_of_its_own_steps() -> None:
    row = when(Sent).go_to(Elsewhere.MOON)

    assert str(refusal(packing=[row])) == said_of(
        row, "<Elsewhere.MOON: 'Moon'> is not one of its steps"
    )


@pytest.mark.parametrize("first", [Step.UNPAID, Step.DONE])
def test_a_row_goes_to_one_step(first: Step) -> None:
    row = when(Sent).go_to(first).issue(Pack).go_to(Step.DONE)

    assert str(refusal(packing=[row])) == said_of(
        row, f"it goes to {first} and to Done: a row has one .go_to"
    )


def test_a_start_leads_somewhere() -> None:
    row = when(Ordered)

    assert str(refusal(new=[row])) == said_of(row, "a row of New must go to a step")


def test_a_row_changes_something() -> None:
    row = when(Returned)

    assert str(refusal(unpaid=[PAY, row])) == said_of(
        row, "it changes nothing; write ignore(...) if that is meant"
    )


# Conditions


@pytest.mark.parametrize("predicate", [lambda data, event: True, partial(max, 1)])
def test_conditions_have_names(predicate: Any) -> None:
    refused = refusal(unpaid=[when(Paid, predicate).go_to(Step.PACKING), PAY])

    assert refused.reason == (
        "conditions are named functions, so that the diagram can name them"
    )


@pytest.mark.parametrize("step", ["new", "unpaid"])
def test_a_guard_looks_at_a_field_that_exists(step: str) -> None:
    row = when(Ordered if step == "new" else Paid, colour="red").go_to(Step.UNPAID)

    assert str(refusal(**{step: [row]})) == said_of(
        row, "neither the event nor the data has a field 'colour'"
    )


def test_before_the_start_there_is_no_data_to_look_at() -> None:
    row = when(Ordered, gift=True).go_to(Step.UNPAID)

    assert "neither the event nor the data has a field 'gift'" in str(
        refusal(new=[row])
    )


@pytest.mark.parametrize(
    "row",
    [
        when(Sent, parcel=stored("colour")).go_to(Step.DONE),
        when(Sent, order_id=stored("order_id")).go_to(Step.DONE),
    ],
    ids=["not in the data", "not in the event"],
)
def test_a_comparison_needs_both_sides(row: Any) -> None:
    refused = refusal(packing=[row])

    assert refused.row == str(row)
    assert refused.reason.endswith("needs that field in the event and in the data")


def test_a_guard_accepts_something() -> None:
    row = when(Paid, final=[]).go_to(Step.PACKING)

    assert str(refusal(unpaid=[row, PAY])) == said_of(
        row, "the guard on 'final' accepts nothing"
    )


@pytest.mark.parametrize(
    ("guard", "value"),
    [("payment", "cheque"), ("amount", "much"), ("gift", 3)],
)
def test_a_guard_accepts_values_that_the_field_can_have(
    guard: str, value: object
) -> None:
    row = when(Paid, **{guard: value}).go_to(Step.PACKING)

    assert str(refusal(unpaid=[row, PAY])) == said_of(
        row, f"{guard!r} can never be {value!r}"
    )


# Data


def test_a_row_sets_fields_of_the_data() -> None:
    row = when(Returned).set(colour="red")

    assert str(refusal(unpaid=[PAY, row])) == said_of(
        row, "sets 'colour', which the data does not have"
    )


@pytest.mark.parametrize(
    ("field", "value"), [("payment", "cheque"), ("parcel", 3), ("gift", "yes")]
)
def test_a_row_sets_values_of_the_fields_type(field: str, value: object) -> None:
    row = when(Returned).set(**{field: value})

    assert str(refusal(unpaid=[PAY, row])) == said_of(
        row, f"sets {field!r} to {value!r}, which is not its type"
    )


class Numbered(Event):
    parcel: int


def test_a_copied_field_has_the_datas_type() -> None:
    row = when(Numbered).go_to(Step.DONE)

    assert str(refusal(packing=[row])) == said_of(
        row, "the event's 'parcel' does not fit the data's field of that name"
    )


# Commands


@pytest.mark.parametrize("command", [Paid, "Pack", Pack("O-1")])
def test_a_row_issues_commands(command: Any) -> None:
    refused = refusal(unpaid=[when(Paid).issue(command).go_to(Step.PACKING)])

    assert refused.reason == f"{command!r} is not a Command class"


def test_a_commands_fields_can_be_filled() -> None:
    row = when(Sent).issue(Refund).go_to(Step.DONE)

    assert str(refusal(packing=[row])) == said_of(
        row, "Refund.amount cannot be filled: neither data nor event has 'amount'"
    )


def test_a_renamed_field_can_be_filled() -> None:
    row = when(Paid).issue(Pack, order_id="colour").go_to(Step.PACKING)

    assert str(refusal(unpaid=[row])) == said_of(
        row, "Pack.order_id cannot be filled: neither data nor event has 'colour'"
    )


def test_a_rename_fills_a_field_that_exists() -> None:
    row = when(Paid).issue(Pack, colour="parcel").go_to(Step.PACKING)

    assert str(refusal(unpaid=[row])) == said_of(
        row, "Pack has no field 'colour' to fill"
    )


def test_what_fills_a_field_has_its_type() -> None:
    row = when(Sent).issue(Refund, amount="parcel").go_to(Step.DONE)

    assert str(refusal(packing=[row])) == said_of(
        row, "'parcel' does not fit Refund.amount"
    )


# Dispositions


@pytest.mark.parametrize("turned_away", [ignore(Paid), reject(Paid)])
def test_nothing_follows_what_takes_every_case(turned_away: Any) -> None:
    assert str(refusal(unpaid=[turned_away, PAY])) == said_of(
        turned_away, "rows for this event after it would never be tried"
    )


# Forms


class Locked(Event):
    lock: socket


class Guarded(Command):
    lock: socket | None = None


@dataclass(frozen=True)
class LockedData(Data):
    lock: socket | None = None


@pytest.mark.parametrize(
    ("form", "attributes"),
    [
        ("Locked", {"packing": [SEND, when(Locked).go_to(Step.DONE)]}),
        ("Guarded", {"packing": [SEND.issue(Guarded)]}),
        ("LockedData", {"Data": LockedData}),
    ],
)
def test_messages_and_data_have_a_json_form(
    form: str, attributes: dict[str, Any]
) -> None:
    assert str(refusal(**attributes)).startswith(
        f"Shop: {form} cannot be written as JSON: "
    )


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"queue": None}, "the queue None must be the name of a queue"),
        ({"patience": 60}, "the patience 60 must be 0 or a timedelta"),
        ({"patience": -HOUR}, "must be 0 or a timedelta of more than 0"),
        ({"summary": staticmethod(slowly)}, "summary is asynchronous"),
    ],
    ids=["queue", "seconds", "negative", "summary"],
)
def test_attributes_are_what_the_engine_can_use(
    attributes: dict[str, Any], reason: str
) -> None:
    assert reason in str(refusal(**attributes))


def test_a_deadline_is_a_time_that_can_be_over() -> None:
    row = after(timedelta.max).go_to(Step.DONE)

    assert "and at most 1,000 years" in str(refusal(packing=[SEND, row]))


@pytest.mark.parametrize(
    ("predicate", "reason"),
    [
        (bit_by_bit, "bit_by_bit yields: a condition is a plain function"),
        (of_one, "of_one must take the data and the event"),
    ],
)
def test_a_condition_tells_at_once(predicate: Any, reason: str) -> None:
    assert reason in str(refusal(packing=[when(Sent, predicate).go_to(Step.DONE)]))


# The start


def test_some_event_starts_it() -> None:
    assert str(refusal(new=[])) == "Shop: no event starts it: New has no rows"


def test_the_correlation_field_is_in_the_data() -> None:
    assert str(refusal(correlation="colour")) == (
        "Shop: the correlation field 'colour' is not in its data"
    )


def test_a_start_fills_the_data() -> None:
    row = when(Sent).go_to(Step.UNPAID)

    assert str(refusal(new=[START, row])) == said_of(
        row, "starts a process but leaves the data's 'order_id' empty"
    )


def test_a_start_may_fill_the_data_by_setting_it() -> None:
    row = when(Sent).set(order_id="?", payment=Payment.CASH).go_to(Step.UNPAID)

    assert define(new=[START, row]).starting_events() == {"Ordered", "Sent"}


# The graph


def test_every_step_can_be_reached() -> None:
    rows = [when(Paid).go_to(Step.DONE)]

    assert str(refusal(unpaid=rows)) == "Shop: Packing can never be reached"


def test_no_step_is_a_dead_end() -> None:
    rows = [when(Paid).go_to(Step.PACKING), when(Sent).go_to(Step.DONE)]

    assert str(refusal(unpaid=rows, packing=[when(Paid).go_to(Step.PACKING)])) == (
        "Shop: Packing is a dead end: no final step can be reached from it"
    )


# Names


def test_two_messages_of_one_name_are_told_apart_by_nobody() -> None:
    twin = type("Paid", (Event,), {"__module__": __name__})
    row = when(twin).go_to(Step.DONE)

    assert str(refusal(packing=[SEND, row])) == said_of(
        row, "two message classes have the name Paid"
    )


# Who is told


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            when(Paid).notify("duty").go_to(Step.PACKING),
            "only a deadline notifies: begin the row with after(...)",
        ),
        (after(timedelta(days=1)).notify("duty", "duty"), "notifies 'duty' twice"),
        (
            after(timedelta(days=1)).notify(""),
            "'' is no name of a recipient: it has up to 50 printable letters",
        ),
        (
            after(timedelta(days=1)).notify("a\nb"),
            "'a\\nb' is no name of a recipient: it has up to 50 printable letters",
        ),
    ],
)
def test_who_is_told_is_named_by_a_deadline(row: TransitionRow, reason: str) -> None:
    assert reason in str(refusal(packing=[SEND, row]))


def test_a_deadline_may_have_people_told_and_nothing_else() -> None:
    row = after(timedelta(days=1)).notify("duty")

    [edge] = [e for e in define(packing=[SEND, row]).graph().edges if e.notifies]

    assert (edge.notifies, edge.source, edge.target) == (("duty",),) + ("Packing",) * 2


# Who sees to it


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            when(Paid).assign("duty").go_to(Step.PACKING),
            "only a deadline assigns: begin the row with after(...)",
        ),
        (
            after(timedelta(days=1)).assign(" "),
            "' ' is no name of a person: it has up to 150 printable letters",
        ),
        (
            after(timedelta(days=1)).assign("a\nb"),
            "'a\\nb' is no name of a person: it has up to 150 printable letters",
        ),
        (
            ignore(Paid).assign("duty"),
            "only a row that moves sets fields, issues commands, escalates, notifies, assigns or goes to a step",
        ),
    ],
)
def test_who_sees_to_it_is_named_by_a_deadline(row: TransitionRow, reason: str) -> None:
    assert reason in str(refusal(packing=[SEND, row]))


def test_a_deadline_may_give_the_process_to_somebody_and_do_nothing_else() -> None:
    row = after(timedelta(days=1)).assign("night-shift")

    [edge] = [e for e in define(packing=[SEND, row]).graph().edges if e.owner]

    assert (edge.owner, edge.source, edge.target) == ("night-shift", *("Packing",) * 2)


# Outside ids


def of_outside_ids(names: object, **fields: Any) -> str:
    form: Any = dataclass(frozen=True)(
        type("Form", (), {"__annotations__": {"order_id": str, **fields}})
    )
    return "; ".join(outside_ids.reasons(names, form, "data"))


def test_s10_1_outside_ids_are_fields_of_the_data() -> None:
    shop = define(outside_ids=("order_id",))

    assert shop.outside_ids == ("order_id",)
    assert str(refusal(outside_ids=("order",))) == (
        "Shop: the outside id 'order' is not in its data: did you mean 'order_id'?"
    )
    assert str(refusal(outside_ids=("moon",))) == (
        "Shop: the outside id 'moon' is not in its data"
    )


@pytest.mark.parametrize("names", ["order_id", 3, None, {"order_id"}])
def test_s10_1_outside_ids_are_a_sequence_of_names(names: object) -> None:
    assert of_outside_ids(names) == (
        'outside_ids holds names of fields: outside_ids = ("parcel",)'
    )


@pytest.mark.parametrize("kind", [bool, float, datetime, dict[str, str], Any, list])
def test_s10_1_what_cannot_be_looked_for_is_no_outside_id(kind: Any) -> None:
    assert "'it' cannot be looked for by its value" in of_outside_ids(("it",), it=kind)


@pytest.mark.parametrize(
    "kind",
    [str, int, UUID, Step, str | None, list[str], tuple[int, ...], list[UUID] | None],
)
def test_s10_1_texts_numbers_and_lists_of_them_are_outside_ids(kind: Any) -> None:
    assert of_outside_ids(("it", "order_id"), it=kind) == ""
