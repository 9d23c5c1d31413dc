"""Orders in the admin: to be found and looked at, and changed by nobody."""

import re

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


def address(view: str, order: Order) -> str:
    return reverse(f"admin:order_listing_order_{view}", args=[order.pk])


def found(admin: Client, words: object) -> list[str]:
    """The areas of the orders that are found."""
    return re.findall(r"Tokyo|Kyushu", admin.read(reverse(LIST), {"q": str(words)}))


@cases("field", "order_id", "process_id")
def test_an_order_is_found_by_its_ids_and_by_nothing_else(
    admin: Client, order: Order, field: str
) -> None:
    assert set(found(admin, getattr(order, field))) == {"Tokyo"}
    for words in ("nothing", "%", "0" * 300):
        assert found(admin, words) == []


def test_an_order_and_its_history_can_be_looked_at(admin: Client, order: Order) -> None:
    history = reverse("admin:order_listing_historyentry_changelist")

    assert "Listed: internal market" in admin.read(address("change", order))
    assert "Entered: 50 MWh base load" in admin.read(history)


def test_nobody_can_add_change_or_delete_an_order(admin: Client, order: Order) -> None:
    admin.read(reverse("admin:order_listing_order_add"), status=403)
    for view in ("change", "delete"):
        answer = admin.post(address(view, order), {"notice": "mine"})
        assert answer.status_code == 403
