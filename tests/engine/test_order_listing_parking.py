"""What the table leaves empty, through the engine: kept, offered in the step that takes it, and told of meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from uuid6 import uuid7

from examples.order_listing.messages import Destination
from examples.order_listing.processes import OrderListing
from orchestrator import Answer, registry, send_event, start_process
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event
from orchestrator.engine.loops.drain import drain
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import pass_time
from tests.services.doing import fresh
from tests.unit.test_order_listing_table import (
    CREATED_BOTH,
    CREATED_THERE,
    LISTED_HERE,
    LISTED_THERE,
    OUTSIDE,
    named,
)
from tests.unit.test_order_listing_table import EARLY as SOON
from tests.unit.test_order_listing_table import WRONG as MISTAKEN

pytestmark = pytest.mark.django_db

Step = OrderListing.Step
WAY = [
    (Step.NOT_STARTED, CREATED_BOTH),
    (Step.AWAITING_EXTERNAL_CREATION, CREATED_THERE),
    (Step.AWAITING_EXTERNAL_LISTING, LISTED_THERE),
    (Step.AWAITING_INTERNAL_LISTING, LISTED_HERE),
]
"""The steps of an order for both markets, and the event that ends each."""


def on_both(data: OrderListing.Data | None) -> bool:
    return data is not None and data.destination == Destination.BOTH


WAITING = [(step, event) for step, data, event in SOON if on_both(data)]
WRONG = [(step, event) for step, data, event in MISTAKEN if on_both(data)]
EARLY = [event for step, _, event in OUTSIDE if step is Step.NOT_STARTED]
LATE = [event for step, _, event in OUTSIDE if step is Step.COMPLETED]


@pytest.fixture(autouse=True)
def markets_answer_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the listing events come when the test sends them, not from the command handlers themselves."""
    for command, handlers in list(registry.command_handlers.items()):
        usual = handlers[0]
        silent = replace(usual, function=silenced(usual.function), after_commit=False)
        monkeypatch.setitem(registry.command_handlers, command, [silent])


def silenced(function: Callable[..., object]) -> Callable[..., Answer]:
    def handler(command: object, context: object) -> Answer:
        if function.__name__ != "request_external_creation":
            function(command, context)
        return Answer("")

    return handler


def reach(step: OrderListing.Step, process_id: UUID) -> None:
    """Bring the process to a step."""
    for passed, event in WAY:
        if passed is step:
            return
        leave(passed, event, process_id)


def leave(step: OrderListing.Step, event: Event, process_id: UUID) -> None:
    """Let the process leave a step by its event."""
    if step is Step.NOT_STARTED:
        start_process(OrderListing, event, id="start", process_id=process_id)
    else:
        send_event(event, id=f"leave {step}", source="way", process_id=process_id)
    drain()


def send(event: Event, process_id: UUID) -> InboxEvent:
    """Send the event under test and have it handled."""
    send_event(event, id="out of place", source="test", process_id=process_id)
    drain()
    return InboxEvent.objects.latest("pk")


def after_its_patience(event: InboxEvent) -> InboxEvent:
    """Let the event's patience pass."""
    pass_time(seconds=conf().PATIENCE_SECONDS + 1)
    return fresh(event)


def test_every_cell_that_moves_nothing_is_looked_at() -> None:
    assert len(WAITING) + len(WRONG) + len(EARLY) + len(LATE) == 19


def out_of_place(step: OrderListing.Step, event: Event) -> InboxEvent:
    """Send an event in a step where it moves nothing."""
    process_id = uuid7()
    reach(step, process_id)
    before = ProcessInstance.objects.get()

    row = send(event, process_id)

    after = ProcessInstance.objects.get()
    assert after.step == step
    assert (after.revision, after.data) == (before.revision, before.data)
    return row


@pytest.mark.parametrize(("step", "event"), WRONG, ids=named)
def test_what_can_only_be_a_mistake_is_an_incident_at_once_and_moves_nothing(
    step: OrderListing.Step, event: Event
) -> None:
    row = out_of_place(step, event)

    told = Incident.objects.get()
    assert (row.verdict, told.kind) == ("rejected", "rejected_event")
    assert told.event_id == row.pk
    assert told.message == f"{row.type} is rejected in step {step}"


@pytest.mark.parametrize(("step", "event"), WAITING, ids=named)
def test_an_event_out_of_place_is_parked_told_of_and_offered_in_a_step_that_takes_it(
    step: OrderListing.Step, event: Event
) -> None:
    row = out_of_place(step, event)
    process = ProcessInstance.objects.get()
    assert row.verdict == "parked"
    assert not Incident.objects.exists()

    after_its_patience(row)
    told = Incident.objects.get()
    reason = f"{type(event).__name__} is not expected in step {step}"
    assert (row.verdict, row.error, told.message) == ("parked", reason, reason)
    assert (told.kind, told.event_id) == ("unexpected_event", row.pk)
    assert (told.instance_id, told.step) == (process.pk, step)

    leave(step, dict(WAY)[step], process.pk)
    reached = list(Step)[list(Step).index(step) + 1]
    assert fresh(row).verdict == expected(reached, event)
    assert row.verdict != "parked" or fresh(process).step == reached


def expected(step: OrderListing.Step, event: Event) -> str:
    if step is Step.COMPLETED:
        return "unexpected"
    rows = OrderListing.rows_for(step, type(event))
    moves = any(row.disposition == "move" for row in rows)
    return "moved" if moves else "parked"


@pytest.mark.parametrize("event", EARLY, ids=named)
def test_an_event_before_its_process_is_kept_and_then_offered(event: Event) -> None:
    process_id = uuid7()
    event_ = send(event, process_id)
    assert event_.verdict == "unrouted"

    leave(Step.NOT_STARTED, CREATED_BOTH, process_id)
    offered = expected(Step.AWAITING_EXTERNAL_CREATION, event)
    assert fresh(event_).verdict == offered
    assert after_its_patience(event_).verdict == offered
    assert bool(event_.error) == (offered == "parked")


@pytest.mark.parametrize("event", LATE, ids=named)
def test_an_event_after_the_end_of_its_process_is_shown_at_once(event: Event) -> None:
    process_id = uuid7()
    reach(Step.COMPLETED, process_id)

    row = send(event, process_id)

    told = Incident.objects.get()
    assert row.verdict == "unexpected"
    assert row.error == f"{row.type} came after the process had ended"
    assert (told.kind, told.event_id) == ("unexpected_event", row.pk)
    assert ProcessInstance.objects.get().finished_at is not None


def test_the_walk_that_these_tests_use_goes_through_every_step() -> None:
    process_id = uuid7()
    order = OrderListing.Data("O-1", Destination.BOTH, CREATED_BOTH.description, "EX-1")

    reach(Step.COMPLETED, process_id)

    instance = ProcessInstance.objects.get()
    visits = instance.step_runs.order_by("id")
    assert [run.node for run in visits] == list(map(str, Step))
    assert instance.summary == OrderListing.summary(order)
