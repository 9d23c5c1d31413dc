"""The messages of a process in a browser: an arrow for each, live, and read aloud without its picture."""

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from tests.browser.conftest import live
from tests.browser.orders import WHAT, created_outside, started
from tests.services.exchange import ExchangeProcess
from tests.services.workers import Workers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def order(exchange: ExchangeProcess, workers: Workers) -> Order:
    """An order that waits for the exchange."""
    exchange.behave(shortest=3600.0, longest=3600.0)
    found = place_order(Destination.BOTH, WHAT)
    started(found)
    return found


def test_messages_stand_as_arrows_and_a_new_one_appears(
    order: Order, signed_in: Page
) -> None:
    signed_in.goto(f"/processes/{order.process_id}/")
    signed_in.get_by_role("link", name="Messages").click()
    signed_in.wait_for_url("**/messages/")
    live(signed_in)
    rows = signed_in.locator(".flow .message")
    before = rows.count()
    assert before > 1

    created_outside(order)

    expect(rows).not_to_have_count(before)
    expect(signed_in.locator(".flow .k-event").last).to_contain_text("from exchange")


def test_an_arrow_goes_from_lane_to_lane_inside_its_row(
    order: Order, signed_in: Page
) -> None:
    for width in (1440, 1024, 390):
        signed_in.set_viewport_size({"width": width, "height": 900})
        signed_in.goto(f"/processes/{order.process_id}/messages/")
        for row in signed_in.locator(".flow .message").all():
            box = row.bounding_box()
            words = row.locator("text").bounding_box()
            assert box is not None
            assert words is not None
            assert words["x"] >= box["x"] - 1
            assert words["x"] + words["width"] <= box["x"] + box["width"] + 1
