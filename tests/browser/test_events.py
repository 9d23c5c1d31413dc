"""S9, events in a browser: what nothing took is given to the process that it was meant for."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination, ExternalOrderCreated
from examples.order_listing.orders import place_order
from orchestrator import send_event
from orchestrator.engine.drain import drain
from orchestrator.models import InboxEvent, OperatorAction
from orchestrator.testing.clock import age
from tests.browser.conftest import live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


def test_s9_2_an_unmatched_event_is_delivered_three_clicks_from_the_first_page(
    signed_in: Page,
) -> None:
    place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    drain()
    told = ExternalOrderCreated("A-1", "X-1", "50 MWh")
    number = send_event(
        told, id="lost", source="exchange", correlation_key="A 1"
    ).number
    drain()
    age(timedelta(minutes=5))
    drain()
    signed_in.goto("/")
    live(signed_in)
    clicks = 0

    signed_in.click("#nav a[href='/events/']")
    clicks += 1
    live(signed_in)
    near = signed_in.locator(".near .one")
    expect(near).to_contain_text("A-1")
    expect(near).to_contain_text("It would move it from")
    near.locator("button").click()
    clicks += 1
    signed_in.fill("#deliver-dialog textarea", "its key was misspelt")
    signed_in.click("#deliver-dialog .acts button:last-child")
    clicks += 1

    expect(signed_in.locator("#flash")).to_contain_text("Offered to that process.")
    assert clicks <= 3
    assert OperatorAction.objects.get().action == "deliver"
    drain()
    assert InboxEvent.objects.get(pk=number).verdict == "moved"
    for width in (1440, 1024, 390):
        signed_in.set_viewport_size({"width": width, "height": 900})
        signed_in.goto("/events/?q=lost&from=2020-01-01")
        across = signed_in.evaluate("document.documentElement.scrollWidth")
        assert across <= width
    expect(signed_in.locator("#events tbody tr")).to_contain_text("It moved A-1 from")
