"""Orders in the admin: to be found and looked at, and changed by nobody."""

import pytest
from django.urls import reverse

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from orchestrator.testing import run
from tests.services.cases import cases
from tests.services.client import Client

pytestmark = pytest.mark.django_db

LIST = "admin:order_listing_order_changelist"


@pytest.fixture
def order() -> Order:
    order = place_order(Destination.INTERNAL, "50 MWh base load, Tokyo area")
    place_order(Destination.INTERNAL, "10 MWh peak load, Kyushu area")
    run()
    return order


@pytest.fixture
def desk(admin: Client) -> Client:
    return admin


@cases("field", "order_id", "process_id")
def test_an_order_is_found_by_its_ids(desk: Client, order: Order, field: str) -> None:
    page = desk.get(reverse(LIST), {"q": str(getattr(order, field))})

    assert "Tokyo" in page.content.decode()
    assert "Kyushu" not in page.content.decode()


@cases("words", "nothing", "%", "0" * 300)
def test_a_search_for_anything_else_finds_nothing(
    desk: Client, order: Order, words: str
) -> None:
    page = desk.get(reverse(LIST), {"q": words})

    assert "Tokyo" not in page.content.decode()


def test_an_order_and_its_history_can_be_looked_at(desk: Client, order: Order) -> None:
    shown = desk.get(reverse("admin:order_listing_order_change", args=[order.pk]))
    history = desk.get(reverse("admin:order_listing_historyentry_changelist"))

    assert "Listed: internal market" in shown.content.decode()
    assert "Entered: 50 MWh base load" in history.content.decode()


def test_nobody_can_add_change_or_delete_an_order(desk: Client, order: Order) -> None:
    address = reverse("admin:order_listing_order_change", args=[order.pk])

    assert desk.get(reverse("admin:order_listing_order_add")).status_code == 403
    assert desk.post(address, {"notice": "mine"}).status_code == 403
    assert (
        desk.post(
            reverse("admin:order_listing_order_delete", args=[order.pk])
        ).status_code
        == 403
    )
