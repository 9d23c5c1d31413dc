"""S9, events in a browser: what nothing took is given to the process that it was meant for."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from examples.order_listing.messages import Destination, ExternalOrderCreated
from examples.order_listing.models import Order
from orchestrator import send_event
from orchestrator.models import InboxEvent, OperatorAction
from orchestrator.testing import run
from orchestrator.testing.clock import move_times_back
from tests.browser.conftest import fits, live, opened_by
from tests.browser.orders import placed
from tests.browser.pressing import opened, press
from tests.services.site import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


def test_s9_2_an_unmatched_event_is_delivered_three_clicks_from_the_first_page(
    signed_in: Page,
) -> None:
    placed(Destination.EXTERNAL, "A-1")
    told = ExternalOrderCreated("A-1", "X-1", "50 MWh")
    lost = send_event(told, id="lost", source="exchange", correlation_key="A 1")
    run()
    move_times_back(timedelta(minutes=5))
    run()
    opened(signed_in, "/")

    signed_in.click("#nav a[href='/events/']")
    live(signed_in)
    near = signed_in.locator(".near .one")
    expect(near).to_contain_text("A-1")
    expect(near).to_contain_text("It would move it from")
    press(signed_in, "deliver", "its key was misspelt", ".near .one button")

    expect(signed_in.locator("#flash")).to_contain_text("Offered to that process.")
    assert OperatorAction.objects.get().action == "deliver"
    run()
    assert InboxEvent.objects.get(pk=lost.number).verdict == "moved"
    signed_in.goto("/events/?q=lost&from=2020-01-01")
    expect(signed_in.locator("#events tbody tr")).to_contain_text("It moved A-1 from")


@pytest.mark.parametrize("scripts", [True, False])
def test_s9_4_an_event_is_sent_after_a_look_at_what_it_would_do(
    scripts: bool, browser: Browser, live_site: Site, operator: User
) -> None:
    order = placed(Destination.EXTERNAL, "A-1")
    more = {"java_script_enabled": scripts}
    with opened_by(browser, live_site, operator, **more) as page:
        sent_by_hand(page, order)


def sent_by_hand(page: Page, order: Order) -> None:
    page.goto("/events/")
    page.click("#send-event")
    page.select_option("select[name=type]", "ExternalOrderCreated")
    page.click("form.filters button")

    page.fill("[name=field-order_id]", "A-1")
    page.fill("[name=field-external_id]", "X-1")
    page.fill("[name=field-description]", "50 MWh")
    page.fill("[name=process]", str(order.process_id))
    page.press("[name=process]", "Enter")

    expect(page.locator("#preview")).to_contain_text("It would move it from")
    expect(page.locator("#preview")).to_contain_text("It would issue ListOnExternal")
    assert not InboxEvent.objects.filter(source="console").exists()
    page.fill("[name=reason]", "the exchange does not call")
    page.click("#send-button")
    expect(page.locator("#flash")).to_contain_text("Sent.")
    expect(page.locator("#events tbody tr")).to_contain_text("ExternalOrderCreated")
    assert OperatorAction.objects.get().action == "send"
    run()
    assert InboxEvent.objects.get(source="console").verdict == "moved"


def test_s9_5_volume_and_retention_by_type_are_on_the_page(signed_in: Page) -> None:
    placed(Destination.EXTERNAL, "A-1")
    opened(signed_in, "/events/?tab=parked")

    signed_in.click("a.button[href='#volume']")
    row = signed_in.locator("#volume tr", has_text="OrderCreated").first
    expect(row).to_contain_text("without a limit with order-listing")
    drawn = row.locator("svg.spark title")
    expect(drawn).to_have_text("OrderCreated: 1 in the last day")
    signed_in.click("#volume .tabs a:last-child")
    expect(drawn).to_have_text("OrderCreated: 1 in the last week")
    assert "tab=parked" in signed_in.url
    fits(signed_in)
    row.locator("a").click()
    expect(signed_in.locator("#events tbody tr")).to_contain_text("OrderCreated")
