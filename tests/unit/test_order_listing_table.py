"""The order listing's table, one written-out case for every cell; where nothing moves, it says what becomes of it."""

from dataclasses import replace

import pytest

from examples.order_listing.messages import (
    AcceptExternalOrder,
    Destination,
    ExternalOrderCreated,
    ExternalOrderRejected,
    ListedOnExternal,
    ListedOnInternal,
    ListOnExternal,
    ListOnInternal,
    NotifyCreationFailed,
    NotifyCreationSucceeded,
    OrderCreated,
    RequestExternalCreation,
)
from examples.order_listing.processes import LenientOrderListing, OrderListing
from orchestrator.definition import Command, Event

Step, Data = OrderListing.Step, OrderListing.Data
INTERNAL, EXTERNAL, BOTH = Destination.INTERNAL, Destination.EXTERNAL, Destination.BOTH
WHAT = "50 MWh base load, Tokyo area"
WAITING_SECONDS = 600


def data(destination: Destination, external_id: str = "") -> OrderListing.Data:
    return Data("O-1", destination, WHAT, external_id)


CREATED_BOTH = OrderCreated("O-1", BOTH, WHAT)
CREATED_EXTERNAL = OrderCreated("O-1", EXTERNAL, WHAT)
CREATED_INTERNAL = OrderCreated("O-1", INTERNAL, WHAT)
CREATED_THERE = ExternalOrderCreated("O-1", "EX-1", WHAT)
REJECTED_THERE = ExternalOrderRejected("credit limit reached")
LISTED_THERE = ListedOnExternal("O-1")
LISTED_HERE = ListedOnInternal("O-1")

Cell = tuple[
    OrderListing.Step,
    OrderListing.Data | None,
    Event,
    Command,
    OrderListing.Step,
    OrderListing.Data,
]

FILLED: list[Cell] = [
    (
        Step.NOT_STARTED,
        None,
        CREATED_BOTH,
        RequestExternalCreation("O-1", WHAT),
        Step.AWAITING_EXTERNAL_CREATION,
        data(BOTH),
    ),
    (
        Step.NOT_STARTED,
        None,
        CREATED_EXTERNAL,
        RequestExternalCreation("O-1", WHAT),
        Step.AWAITING_EXTERNAL_CREATION,
        data(EXTERNAL),
    ),
    (
        Step.NOT_STARTED,
        None,
        CREATED_INTERNAL,
        ListOnInternal("O-1", INTERNAL, WHAT),
        Step.AWAITING_INTERNAL_LISTING,
        data(INTERNAL),
    ),
    (
        Step.NOT_STARTED,
        None,
        CREATED_THERE,
        AcceptExternalOrder("O-1", EXTERNAL, WHAT, "EX-1"),
        Step.AWAITING_EXTERNAL_LISTING,
        data(EXTERNAL, "EX-1"),
    ),
    (
        Step.AWAITING_EXTERNAL_CREATION,
        data(BOTH),
        CREATED_THERE,
        ListOnExternal("O-1", BOTH, WHAT, "EX-1"),
        Step.AWAITING_EXTERNAL_LISTING,
        data(BOTH, "EX-1"),
    ),
    (
        Step.AWAITING_EXTERNAL_CREATION,
        data(EXTERNAL),
        CREATED_THERE,
        ListOnExternal("O-1", EXTERNAL, WHAT, "EX-1"),
        Step.AWAITING_EXTERNAL_LISTING,
        data(EXTERNAL, "EX-1"),
    ),
    (
        Step.AWAITING_EXTERNAL_CREATION,
        data(BOTH),
        REJECTED_THERE,
        NotifyCreationFailed("O-1", BOTH, WHAT, "credit limit reached"),
        Step.COMPLETED,
        replace(data(BOTH), reason="credit limit reached"),
    ),
    (
        Step.AWAITING_EXTERNAL_CREATION,
        data(EXTERNAL),
        REJECTED_THERE,
        NotifyCreationFailed("O-1", EXTERNAL, WHAT, "credit limit reached"),
        Step.COMPLETED,
        replace(data(EXTERNAL), reason="credit limit reached"),
    ),
    (
        Step.AWAITING_EXTERNAL_LISTING,
        data(BOTH, "EX-1"),
        LISTED_THERE,
        ListOnInternal("O-1", BOTH, WHAT),
        Step.AWAITING_INTERNAL_LISTING,
        data(BOTH, "EX-1"),
    ),
    (
        Step.AWAITING_EXTERNAL_LISTING,
        data(EXTERNAL, "EX-1"),
        LISTED_THERE,
        NotifyCreationSucceeded("O-1", EXTERNAL, WHAT),
        Step.COMPLETED,
        data(EXTERNAL, "EX-1"),
    ),
    (
        Step.AWAITING_INTERNAL_LISTING,
        data(BOTH, "EX-1"),
        LISTED_HERE,
        NotifyCreationSucceeded("O-1", BOTH, WHAT),
        Step.COMPLETED,
        data(BOTH, "EX-1"),
    ),
    (
        Step.AWAITING_INTERNAL_LISTING,
        data(INTERNAL),
        LISTED_HERE,
        NotifyCreationSucceeded("O-1", INTERNAL, WHAT),
        Step.COMPLETED,
        data(INTERNAL),
    ),
]

Unmoved = tuple[OrderListing.Step, OrderListing.Data | None, Event]

EARLY: list[Unmoved] = [
    (Step.AWAITING_EXTERNAL_CREATION, data(BOTH), LISTED_THERE),
    (Step.AWAITING_EXTERNAL_CREATION, data(EXTERNAL), LISTED_THERE),
    (Step.AWAITING_EXTERNAL_CREATION, data(BOTH), LISTED_HERE),
    (Step.AWAITING_EXTERNAL_LISTING, data(BOTH, "EX-1"), LISTED_HERE),
]
"""What a later step of the order waits for: parked."""

WRONG: list[Unmoved] = [
    (Step.AWAITING_EXTERNAL_CREATION, data(BOTH), CREATED_BOTH),
    (Step.AWAITING_EXTERNAL_CREATION, data(EXTERNAL), LISTED_HERE),
    (Step.AWAITING_EXTERNAL_LISTING, data(BOTH, "EX-1"), CREATED_BOTH),
    (Step.AWAITING_EXTERNAL_LISTING, data(BOTH, "EX-1"), CREATED_THERE),
    (Step.AWAITING_EXTERNAL_LISTING, data(BOTH, "EX-1"), REJECTED_THERE),
    (Step.AWAITING_EXTERNAL_LISTING, data(EXTERNAL, "EX-1"), LISTED_HERE),
    (Step.AWAITING_INTERNAL_LISTING, data(BOTH, "EX-1"), CREATED_BOTH),
    (Step.AWAITING_INTERNAL_LISTING, data(BOTH, "EX-1"), CREATED_THERE),
    (Step.AWAITING_INTERNAL_LISTING, data(BOTH, "EX-1"), REJECTED_THERE),
    (Step.AWAITING_INTERNAL_LISTING, data(BOTH, "EX-1"), LISTED_THERE),
]
"""What can only be a mistake: rejected."""

OUTSIDE: list[Unmoved] = [
    (Step.NOT_STARTED, None, REJECTED_THERE),
    (Step.NOT_STARTED, None, LISTED_THERE),
    (Step.NOT_STARTED, None, LISTED_HERE),
    (Step.COMPLETED, data(BOTH, "EX-1"), CREATED_BOTH),
    (Step.COMPLETED, data(BOTH, "EX-1"), CREATED_THERE),
    (Step.COMPLETED, data(BOTH, "EX-1"), REJECTED_THERE),
    (Step.COMPLETED, data(BOTH, "EX-1"), LISTED_THERE),
    (Step.COMPLETED, data(BOTH, "EX-1"), LISTED_HERE),
]
"""What comes before the process or after it: nothing decides on it."""


def named(value: object) -> str | None:
    if isinstance(value, OrderListing.Step):
        return str(value)
    if isinstance(value, OrderListing.Data):
        return str(value.destination)
    return type(value).__name__ if isinstance(value, Event | Command) else None


@pytest.mark.parametrize(
    ("step", "before", "event", "command", "target", "after"), FILLED, ids=named
)
def test_a_filled_cell_issues_its_command_and_goes_to_its_step(
    step: OrderListing.Step,
    before: OrderListing.Data | None,
    event: Event,
    command: Command,
    target: OrderListing.Step,
    after: OrderListing.Data,
) -> None:
    decision = OrderListing.decide(step, before, event)

    assert decision.outcome == "moved"
    assert decision.commands == (command,)
    assert decision.step is target
    assert decision.data == after


@pytest.mark.parametrize(
    ("step", "before", "event", "outcome"),
    [
        *((*case, "parked") for case in EARLY),
        *((*case, "rejected") for case in WRONG),
        *((*case, "parked") for case in OUTSIDE),
    ],
    ids=named,
)
def test_what_moves_nothing_waits_or_is_wrong_and_changes_nothing(
    step: OrderListing.Step,
    before: OrderListing.Data | None,
    event: Event,
    outcome: str,
) -> None:
    decision = OrderListing.decide(step, before, event)

    assert decision.outcome == outcome
    assert decision.commands == ()
    assert decision.step is step
    assert decision.data == before


@pytest.mark.parametrize(("step", "before", "event"), WRONG, ids=named)
def test_the_first_version_parks_what_the_second_rejects(
    step: OrderListing.Step, before: OrderListing.Data | None, event: Event
) -> None:
    assert (LenientOrderListing.name, LenientOrderListing.version) == (
        OrderListing.name,
        1,
    )
    assert LenientOrderListing.decide(step, before, event).outcome == "parked"


def test_every_cell_of_the_table_has_its_case() -> None:
    filled = {(step, type(event)) for step, _, event, *_ in FILLED}
    unmoved = {(step, type(event)) for step, _, event in [*EARLY, *WRONG, *OUTSIDE]}

    assert filled & unmoved == set()
    assert filled | unmoved == {
        (step, event)
        for step in OrderListing.Step
        for event in OrderListing.events.values()
    }


def test_waiting_for_the_exchange_escalates_after_ten_minutes_and_stays_in_its_step() -> (
    None
):
    step, before = Step.AWAITING_EXTERNAL_CREATION, data(BOTH)

    decision = OrderListing.decide_deadline(step, before, 0)

    assert [timer.total_seconds() for timer in OrderListing.timers(step)] == [
        WAITING_SECONDS
    ]
    assert decision.escalates
    assert (decision.step, decision.data, decision.commands) == (step, before, ())


@pytest.mark.parametrize(
    ("known", "line"),
    [
        (data(BOTH), "Both markets, 50 MWh base load, Tokyo area"),
        (data(INTERNAL), "Internal market, 50 MWh base load, Tokyo area"),
        (data(EXTERNAL), "Exchange, 50 MWh base load, Tokyo area"),
        (Data("O-1", EXTERNAL), "Exchange"),
    ],
)
def test_the_summary_speaks_the_language_of_the_trade(
    known: OrderListing.Data, line: str
) -> None:
    assert OrderListing.summary(known) == line
