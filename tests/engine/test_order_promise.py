"""An order's listings and its process's step never disagree; and entering an order is all or nothing."""

from typing import Any

import pytest
from django.utils import timezone
from uuid6 import uuid7

from examples.order_listing.messages import (
    Destination,
    ExternalOrderCreated,
    ExternalOrderRejected,
    OrderCreated,
)
from examples.order_listing.models import HistoryEntry, Order
from examples.order_listing.orders import place_order
from examples.order_listing.processes import OrderListing
from examples.order_listing.promise import disagreements
from orchestrator import send_event, start_process
from orchestrator.exceptions import ConflictingEvent
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Status, Verdict
from orchestrator.testing import run
from tests.services.invariants import undone

pytestmark = pytest.mark.django_db

WHAT = "50 MWh base load, Tokyo area"
INTERNAL, EXTERNAL, BOTH = Destination.INTERNAL, Destination.EXTERNAL, Destination.BOTH


def announce(order: Order) -> None:
    created = ExternalOrderCreated(
        order.order_id, f"EX-{order.order_id}", order.description
    )
    send_event(
        created,
        id=f"created {order.pk}",
        source="exchange",
        process_id=order.process_id,
    )
    run()


def process_of(order: Order) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=order.process_id)


# Entering


def test_an_order_for_the_internal_market_has_a_process_and_is_listed_there_alone() -> (
    None
):
    order = place_order(INTERNAL, WHAT)
    run()

    process = process_of(order)
    assert process.correlation_key == order.order_id
    assert process.summary == f"Internal market, {WHAT}"

    order.refresh_from_db()
    assert order.internal_listed_at is not None
    assert order.external_listed_at is None
    assert order.notice == "Listed: internal market"
    assert process_of(order).status == Status.COMPLETED

    run()

    assert [(entry.order_id, entry.text) for entry in HistoryEntry.objects.all()] == [
        (order.order_id, f"Entered: {WHAT}")
    ]


def test_entering_is_undone_with_the_callers_transaction() -> None:
    with undone():
        place_order(BOTH, WHAT)

    assert not Order.objects.exists()
    assert not InboxEvent.objects.exists()


def test_entering_an_order_twice_gives_the_first_one_again_and_refuses_another() -> (
    None
):
    first = place_order(BOTH, WHAT, order_id="O-1")
    second = place_order(BOTH, WHAT, order_id="O-1")
    with pytest.raises(ConflictingEvent):
        place_order(INTERNAL, WHAT, order_id="O-1")

    assert first == second
    assert first.process_id == second.process_id
    assert InboxEvent.objects.get().repeats == 1
    assert Order.objects.get().destination == BOTH


# What the handlers write


@pytest.mark.parametrize(("destination", "internal"), [(EXTERNAL, False), (BOTH, True)])
def test_an_announced_order_is_listed_where_it_is_destined_for(
    destination: Destination, internal: bool
) -> None:
    order = place_order(destination, WHAT)
    run()
    announce(order)

    order.refresh_from_db()
    assert order.external_id == f"EX-{order.order_id}"
    assert order.external_listed_at is not None
    assert (order.internal_listed_at is not None) is internal
    assert disagreements() == []


def test_a_refused_order_is_listed_nowhere() -> None:
    order = place_order(BOTH, WHAT)
    run()
    no = ExternalOrderRejected("credit limit reached")
    send_event(no, id="no", source="exchange", process_id=order.process_id)
    run()

    order.refresh_from_db()
    assert (order.external_listed_at, order.internal_listed_at) == (None, None)
    assert (order.notice, order.reason) == (
        "Refused by the exchange",
        "credit limit reached",
    )
    assert disagreements() == []


def test_an_order_born_on_the_exchange_gets_its_row_and_its_destination() -> None:
    send_event(ExternalOrderCreated("EX-1", "EX-1", WHAT), id="born", source="exchange")
    run()

    order = Order.objects.get()
    assert (order.order_id, order.external_id, order.destination) == (
        "EX-1",
        "EX-1",
        EXTERNAL,
    )
    assert process_of(order).data["destination"] == "external"
    assert disagreements() == []


def test_an_order_entered_elsewhere_gets_its_row_with_its_first_command() -> None:
    start_process(
        OrderListing, OrderCreated("W-1", INTERNAL, WHAT), id="web-1", source="web"
    )
    run()

    assert Order.objects.get().notice == "Listed: internal market"
    assert disagreements() == []


def test_an_order_id_of_an_ended_process_is_not_used_again() -> None:
    order = place_order(INTERNAL, WHAT, order_id="O-1")
    run()
    send_event(ExternalOrderCreated("O-1", "EX-9", WHAT), id="again", source="exchange")
    run()

    order.refresh_from_db()
    assert order.external_id == ""
    assert InboxEvent.objects.get(event_id="again").verdict == Verdict.FAILED
    assert (
        f"order O-1 belongs to another process, {order.process_id}"
        in Incident.objects.get().message
    )
    assert disagreements() == []


# What counts as a disagreement


@pytest.fixture
def waiting() -> Order:
    """Return an order for both markets that the exchange has not answered."""
    order = place_order(BOTH, WHAT)
    run()
    assert process_of(order).step == "AwaitingExternalCreation"
    assert disagreements() == []
    return order


def test_a_listing_or_a_refusal_before_its_step_is_noticed(waiting: Order) -> None:
    now = timezone.now()
    changes: tuple[dict[str, Any], ...] = (
        {"external_listed_at": now},
        {"internal_listed_at": now},
        {"reason": "no"},
    )
    for change in changes:
        with undone():
            Order.objects.filter(pk=waiting.pk).update(**change)
            assert len(disagreements()) == 1


@pytest.mark.parametrize(
    "step", ["AwaitingExternalListing", "AwaitingInternalListing", "Completed"]
)
def test_a_step_before_its_listing_is_noticed(waiting: Order, step: str) -> None:
    with undone():
        ProcessInstance.objects.filter(pk=waiting.process_id).update(step=step)
        found = disagreements()

    assert found == [
        f"{waiting.pk} for both in {step} stands as ListingState(external=False, internal=False, refused=False)"
    ]


def test_a_listing_without_a_process_is_noticed() -> None:
    with undone():
        Order.objects.create(
            order_id="O-1",
            process_id=uuid7(),
            destination=BOTH,
            internal_listed_at=timezone.now(),
        )
        found = disagreements()

    assert len(found) == 1


def test_a_listed_process_without_an_order_is_noticed() -> None:
    order_id = place_order(INTERNAL, WHAT).order_id
    run()
    with undone():
        Order.objects.all().delete()
        found = disagreements()

    assert found == [f"{order_id} in Completed has no order"]
