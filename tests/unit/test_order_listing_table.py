"""The order listing's table, one written-out case for every cell; where nothing moves, it says what becomes of it."""

from dataclasses import replace

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
from tests.services.cases import cases

Step = OrderListing.Step
Data = OrderListing.Data
INTERNAL, EXTERNAL, BOTH = Destination.INTERNAL, Destination.EXTERNAL, Destination.BOTH
WHAT = "50 MWh base load, Tokyo area"
WAITING_SECONDS = 600


def data(destination: Destination, external_id: str = "") -> Data:
    return Data("O-1", destination, WHAT, external_id)


CREATED_BOTH = OrderCreated("O-1", BOTH, WHAT)
CREATED_EXTERNAL = OrderCreated("O-1", EXTERNAL, WHAT)
CREATED_INTERNAL = OrderCreated("O-1", INTERNAL, WHAT)
CREATED_THERE = ExternalOrderCreated("O-1", "EX-1", WHAT)
REJECTED_THERE = ExternalOrderRejected("credit limit reached")
LISTED_THERE = ListedOnExternal("O-1")
LISTED_HERE = ListedOnInternal("O-1")

START, CREATION = Step.NOT_STARTED, Step.AWAITING_EXTERNAL_CREATION
THERE, HERE = Step.AWAITING_EXTERNAL_LISTING, Step.AWAITING_INTERNAL_LISTING
END = Step.COMPLETED

FOR_BOTH, FOR_EXTERNAL, FOR_INTERNAL = data(BOTH), data(EXTERNAL), data(INTERNAL)
BOTH_THERE, EXTERNAL_THERE = data(BOTH, "EX-1"), data(EXTERNAL, "EX-1")
BOTH_REFUSED = replace(FOR_BOTH, reason="credit limit reached")
EXTERNAL_REFUSED = replace(FOR_EXTERNAL, reason="credit limit reached")

REQUEST = RequestExternalCreation("O-1", WHAT)
ACCEPT = AcceptExternalOrder("O-1", EXTERNAL, WHAT, "EX-1")
LIST_HERE, LIST_BOTH_HERE = (
    ListOnInternal("O-1", where, WHAT) for where in (INTERNAL, BOTH)
)
LIST_THERE, LIST_BOTH_THERE = (
    ListOnExternal("O-1", where, WHAT, "EX-1") for where in (EXTERNAL, BOTH)
)
BOTH_FAILED, FAILED = (
    NotifyCreationFailed("O-1", where, WHAT, "credit limit reached")
    for where in (BOTH, EXTERNAL)
)
BOTH_DONE, THERE_DONE, HERE_DONE = (
    NotifyCreationSucceeded("O-1", where, WHAT) for where in (BOTH, EXTERNAL, INTERNAL)
)

Cell = tuple[Step, Data | None, Event, Command, Step, Data]

FILLED: list[Cell] = [
    (START, None, CREATED_BOTH, REQUEST, CREATION, FOR_BOTH),
    (START, None, CREATED_EXTERNAL, REQUEST, CREATION, FOR_EXTERNAL),
    (START, None, CREATED_INTERNAL, LIST_HERE, HERE, FOR_INTERNAL),
    (START, None, CREATED_THERE, ACCEPT, THERE, EXTERNAL_THERE),
    (CREATION, FOR_BOTH, CREATED_THERE, LIST_BOTH_THERE, THERE, BOTH_THERE),
    (CREATION, FOR_EXTERNAL, CREATED_THERE, LIST_THERE, THERE, EXTERNAL_THERE),
    (CREATION, FOR_BOTH, REJECTED_THERE, BOTH_FAILED, END, BOTH_REFUSED),
    (CREATION, FOR_EXTERNAL, REJECTED_THERE, FAILED, END, EXTERNAL_REFUSED),
    (THERE, BOTH_THERE, LISTED_THERE, LIST_BOTH_HERE, HERE, BOTH_THERE),
    (THERE, EXTERNAL_THERE, LISTED_THERE, THERE_DONE, END, EXTERNAL_THERE),
    (HERE, BOTH_THERE, LISTED_HERE, BOTH_DONE, END, BOTH_THERE),
    (HERE, FOR_INTERNAL, LISTED_HERE, HERE_DONE, END, FOR_INTERNAL),
]

Unmoved = tuple[Step, Data | None, Event]


def unmoved(step: Step, *events: Event) -> list[Unmoved]:
    """Return the cells of these events in one step of an order for both markets."""
    before = {START: None, CREATION: FOR_BOTH}.get(step, BOTH_THERE)
    return [(step, before, event) for event in events]


EARLY: list[Unmoved] = [
    (CREATION, FOR_EXTERNAL, LISTED_THERE),
    *unmoved(CREATION, LISTED_THERE, LISTED_HERE),
    *unmoved(THERE, LISTED_HERE),
]
"""What a later step of the order waits for: parked."""

WRONG: list[Unmoved] = [
    (CREATION, FOR_EXTERNAL, LISTED_HERE),
    (THERE, EXTERNAL_THERE, LISTED_HERE),
    *unmoved(CREATION, CREATED_BOTH),
    *unmoved(THERE, CREATED_BOTH, CREATED_THERE, REJECTED_THERE),
    *unmoved(HERE, CREATED_BOTH, CREATED_THERE, REJECTED_THERE, LISTED_THERE),
]
"""What can only be a mistake: rejected."""

LATER = (CREATED_THERE, REJECTED_THERE, LISTED_THERE, LISTED_HERE)
OUTSIDE: list[Unmoved] = [
    *unmoved(START, *LATER[1:]),
    *unmoved(END, CREATED_BOTH, *LATER),
]
"""What comes before the process or after it: nothing decides on it."""


def named(value: object) -> str | None:
    """Return what a case is called by, where each is a test of its own."""
    if isinstance(value, Step):
        return str(value)
    if isinstance(value, Data):
        return str(value.destination)
    return type(value).__name__ if isinstance(value, Event | Command) else None


@cases("step, before, event, command, target, after", *FILLED)
def test_a_filled_cell_issues_its_command_and_goes_to_its_step(
    step: Step,
    before: Data | None,
    event: Event,
    command: Command,
    target: Step,
    after: Data,
) -> None:
    decision = OrderListing.decide(step, before, event)

    assert (decision.outcome, decision.commands) == ("moved", (command,))
    assert (decision.step, decision.data) == (target, after)


@cases(
    "step, before, event, outcome",
    *((*case, "parked") for case in EARLY + OUTSIDE),
    *((*case, "rejected") for case in WRONG),
)
def test_what_moves_nothing_waits_or_is_wrong_and_changes_nothing(
    step: Step, before: Data | None, event: Event, outcome: str
) -> None:
    decision = OrderListing.decide(step, before, event)

    assert (decision.outcome, decision.commands) == (outcome, ())
    assert (decision.step, decision.data) == (step, before)


@cases("step, before, event", *WRONG)
def test_version_1_parks_these(step: Step, before: Data | None, event: Event) -> None:
    first = LenientOrderListing

    assert (first.name, first.version) == (OrderListing.name, 1)
    assert first.decide(step, before, event).outcome == "parked"


def test_every_cell_of_the_table_has_its_case() -> None:
    filled = {(step, type(event)) for step, _, event, *_ in FILLED}
    unmoved = {(step, type(event)) for step, _, event in [*EARLY, *WRONG, *OUTSIDE]}

    assert filled & unmoved == set()
    assert filled | unmoved == {
        (step, event) for step in Step for event in OrderListing.events.values()
    }


def test_waiting_for_the_exchange_escalates_after_ten_minutes_and_stays() -> None:
    decision = OrderListing.decide_deadline(CREATION, FOR_BOTH, 0)

    timers = [timer.total_seconds() for timer in OrderListing.timers(CREATION)]
    assert timers == [WAITING_SECONDS]
    assert decision.escalates
    assert (decision.step, decision.data) == (CREATION, FOR_BOTH)
    assert decision.commands == ()


@cases(
    "known, line",
    (FOR_BOTH, "Both markets, 50 MWh base load, Tokyo area"),
    (FOR_INTERNAL, "Internal market, 50 MWh base load, Tokyo area"),
    (FOR_EXTERNAL, "Exchange, 50 MWh base load, Tokyo area"),
    (Data("O-1", EXTERNAL), "Exchange"),
)
def test_the_summary_is_in_words_of_the_trade(known: Data, line: str) -> None:
    assert OrderListing.summary(known) == line
