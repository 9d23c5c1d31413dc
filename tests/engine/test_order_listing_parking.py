"""What the table leaves empty, through the engine: kept, offered in the step that takes it, and told of meanwhile."""

from collections.abc import Callable
from uuid import UUID

import pytest
from uuid6 import uuid7

from examples.order_listing.messages import Destination
from examples.order_listing.processes import OrderListing
from orchestrator import Answer, registry, send_event, start_process
from orchestrator.conf import conf
from orchestrator.definition import Event
from orchestrator.engine.drain import drain
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Verdict
from orchestrator.testing import pass_time
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
        silent = registry.Handler(
            silenced(handlers[0].function), handlers[0].message, False, 1, 5, "default"
        )
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
    number = send_event(
        event, id="out of place", source="test", process_id=process_id
    ).number
    drain()
    return InboxEvent.objects.get(pk=number)


def after_its_patience(event: InboxEvent) -> InboxEvent:
    """Let the event's patience pass."""
    pass_time(seconds=conf().PATIENCE_SECONDS + 1)
    event.refresh_from_db()
    return event


def test_every_cell_that_moves_nothing_is_looked_at() -> None:
    assert len(WAITING) + len(WRONG) + len(EARLY) + len(LATE) == 19


def out_of_place(step: OrderListing.Step, event: Event) -> InboxEvent:
    """Send an event in a step where it moves nothing."""
    process_id = uuid7()
    reach(step, process_id)
    before = ProcessInstance.objects.get()

    row = send(event, process_id)

    after = ProcessInstance.objects.get()
    assert (after.step, after.revision, after.data) == (
        step,
        before.revision,
        before.data,
    )
    return row


@pytest.mark.parametrize(("step", "event"), WRONG, ids=named)
def test_what_can_only_be_a_mistake_is_an_incident_at_once_and_moves_nothing(
    step: OrderListing.Step, event: Event
) -> None:
    row = out_of_place(step, event)

    assert row.verdict == Verdict.REJECTED
    incident = Incident.objects.get()
    assert (incident.kind, incident.event_id) == (
        Incident.Kind.REJECTED_EVENT,
        row.pk,
    )
    assert incident.message == f"{row.type} is rejected in step {step}"


@pytest.mark.parametrize(("step", "event"), WAITING, ids=named)
def test_an_event_out_of_place_is_parked_told_of_and_offered_in_a_step_that_takes_it(
    step: OrderListing.Step, event: Event
) -> None:
    parked = out_of_place(step, event)
    process = ProcessInstance.objects.get()
    assert parked.verdict == Verdict.PARKED
    assert not Incident.objects.exists()

    row = after_its_patience(InboxEvent.objects.get(pk=parked.pk))
    incident = Incident.objects.get()
    reason = f"{type(event).__name__} is not expected in step {step}"
    assert (row.verdict, row.error) == (Verdict.PARKED, reason)
    assert (incident.kind, incident.event_id) == ("unexpected_event", row.pk)
    assert (incident.instance_id, incident.step) == (process.pk, step)
    assert incident.message == reason

    leave(step, dict(WAY)[step], process.pk)
    row.refresh_from_db()
    reached = list(Step)[list(Step).index(step) + 1]
    assert row.verdict == expected(reached, event)
    if row.verdict == Verdict.PARKED:
        assert ProcessInstance.objects.get().step == reached


def expected(step: OrderListing.Step, event: Event) -> Verdict:
    if step is Step.COMPLETED:
        return Verdict.UNEXPECTED
    rows = OrderListing.rows_for(step, type(event))
    moves = any(row.disposition == "move" for row in rows)
    return Verdict.MOVED if moves else Verdict.PARKED


@pytest.mark.parametrize("event", EARLY, ids=named)
def test_an_event_before_its_process_is_kept_offered_at_the_start_and_then_told_of(
    event: Event,
) -> None:
    process_id = uuid7()
    early = send(event, process_id)

    leave(Step.NOT_STARTED, CREATED_BOTH, process_id)
    offered = InboxEvent.objects.get(pk=early.pk)
    final = after_its_patience(InboxEvent.objects.get(pk=early.pk))

    assert early.verdict == Verdict.UNROUTED
    assert offered.verdict == expected(Step.AWAITING_EXTERNAL_CREATION, event)
    assert final.verdict == offered.verdict
    assert bool(final.error) == (offered.verdict == Verdict.PARKED)


@pytest.mark.parametrize("event", LATE, ids=named)
def test_an_event_after_the_end_of_its_process_is_shown_at_once(event: Event) -> None:
    process_id = uuid7()
    reach(Step.COMPLETED, process_id)

    row = send(event, process_id)

    incident = Incident.objects.get()
    assert (row.verdict, row.error) == (
        Verdict.UNEXPECTED,
        f"{row.type} came after the process had ended",
    )
    assert (incident.kind, incident.event_id) == (
        Incident.Kind.UNEXPECTED_EVENT,
        row.pk,
    )
    assert ProcessInstance.objects.get().finished_at is not None


def test_the_walk_that_these_tests_use_goes_through_every_step() -> None:
    process_id = uuid7()
    order = OrderListing.Data("O-1", Destination.BOTH, CREATED_BOTH.description, "EX-1")

    reach(Step.COMPLETED, process_id)

    instance = ProcessInstance.objects.get()
    assert [run.node for run in instance.step_runs.order_by("id")] == [
        str(step) for step in Step
    ]
    assert instance.summary == OrderListing.summary(order)
