"""An order's listings and its process's step never disagree; and entering an order is all or nothing."""

from collections.abc import Iterator

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
from orchestrator.definition import Event
from orchestrator.exceptions import ConflictingEvent
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import run
from tests.services.doing import fresh
from tests.services.invariants import undone

pytestmark = pytest.mark.django_db

WHAT = "50 MWh base load, Tokyo area"
INTERNAL, EXTERNAL, BOTH = Destination.INTERNAL, Destination.EXTERNAL, Destination.BOTH


@pytest.fixture(autouse=True)
def agreed() -> Iterator[None]:
    """After each test, orders and their processes must agree."""
    yield
    assert disagreements() == []


def process_of(order: Order) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=order.process_id)


def placed(destination: Destination, order_id: str = "") -> Order:
    """Return an order that has got as far as it can without the exchange."""
    order = place_order(destination, WHAT, order_id=order_id)
    run()
    return fresh(order)


def answered(event: Event, order: Order | None = None) -> None:
    """Have the exchange say something, of this order or of whichever it names."""
    address = order.process_id if order else None
    send_event(event, id="said", source="exchange", process_id=address)
    run()


# Entering


def test_an_internal_order_has_a_process_and_is_listed_there_alone() -> None:
    order = placed(INTERNAL)

    process = process_of(order)
    assert process.correlation_key == order.order_id
    assert process.summary == f"Internal market, {WHAT}"
    assert process.status == "completed"
    assert order.internal_listed_at is not None
    assert order.external_listed_at is None
    assert order.notice == "Listed: internal market"

    run()

    [entry] = HistoryEntry.objects.all()
    assert (entry.order_id, entry.text) == (order.order_id, f"Entered: {WHAT}")


def test_entering_is_undone_with_the_callers_transaction() -> None:
    with undone():
        place_order(BOTH, WHAT)

    assert not Order.objects.exists()
    assert not InboxEvent.objects.exists()


def test_entering_an_order_twice_gives_the_first_and_refuses_another() -> None:
    first, second = (place_order(BOTH, WHAT, order_id="O-1") for _ in range(2))
    with pytest.raises(ConflictingEvent):
        place_order(INTERNAL, WHAT, order_id="O-1")

    assert (first, first.process_id) == (second, second.process_id)
    assert InboxEvent.objects.get().repeats == 1
    assert Order.objects.get().destination == BOTH


# What the handlers write


@pytest.mark.parametrize(("destination", "internal"), [(EXTERNAL, False), (BOTH, True)])
def test_an_announced_order_is_listed_where_it_is_destined_for(
    destination: Destination, internal: bool
) -> None:
    order = placed(destination)
    answered(ExternalOrderCreated(order.order_id, "EX-1", order.description), order)

    assert fresh(order).external_id == "EX-1"
    assert order.external_listed_at is not None
    assert (order.internal_listed_at is not None) is internal


def test_a_refused_order_is_listed_nowhere() -> None:
    order = placed(BOTH)
    answered(ExternalOrderRejected("credit limit reached"), order)

    assert fresh(order).reason == "credit limit reached"
    assert order.notice == "Refused by the exchange"
    assert (order.external_listed_at, order.internal_listed_at) == (None, None)


def test_an_order_born_on_the_exchange_gets_its_row_and_its_destination() -> None:
    answered(ExternalOrderCreated("EX-1", "EX-1", WHAT))

    order = Order.objects.get()
    assert (order.order_id, order.external_id) == ("EX-1", "EX-1")
    assert order.destination == process_of(order).data["destination"] == EXTERNAL


def test_an_order_entered_elsewhere_gets_its_row_with_its_first_command() -> None:
    entered = OrderCreated("W-1", INTERNAL, WHAT)
    start_process(OrderListing, entered, id="web-1", source="web")
    run()

    assert Order.objects.get().notice == "Listed: internal market"


def test_an_order_id_of_an_ended_process_is_not_used_again() -> None:
    order = placed(INTERNAL, order_id="O-1")
    answered(ExternalOrderCreated("O-1", "EX-9", WHAT))

    assert fresh(order).external_id == ""
    assert InboxEvent.objects.get(event_id="said").verdict == "failed"
    said = f"order O-1 belongs to another process, {order.process_id}"
    assert said in Incident.objects.get().message


# What counts as a disagreement


@pytest.fixture
def waiting() -> Order:
    """Return an order for both markets that the exchange has not answered."""
    order = placed(BOTH)
    assert process_of(order).step == "AwaitingExternalCreation"
    assert disagreements() == []
    return order


def test_a_listing_or_a_refusal_before_its_step_is_noticed(waiting: Order) -> None:
    now = timezone.now()
    changes = {"external_listed_at": now, "internal_listed_at": now, "reason": "no"}
    for name, value in changes.items():
        with undone():
            Order.objects.filter(pk=waiting.pk).update(**{name: value})
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
    about = {"order_id": "O-1", "process_id": uuid7(), "destination": BOTH}
    with undone():
        Order.objects.create(internal_listed_at=timezone.now(), **about)
        assert len(disagreements()) == 1


def test_a_listed_process_without_an_order_is_noticed() -> None:
    order_id = placed(INTERNAL).order_id
    with undone():
        Order.objects.all().delete()
        found = disagreements()

    assert found == [f"{order_id} in Completed has no order"]
