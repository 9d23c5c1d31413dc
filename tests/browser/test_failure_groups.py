"""S5, the failure inbox, in a browser: a group opens, and grows while it is looked at."""

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.engine.drain import drain
from tests.browser.conftest import live
from tests.browser.samples import HARMFUL

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def group(signed_in: Page) -> Page:
    """The page of the only group, opened from the first page."""
    fail(3)
    signed_in.goto("/")
    signed_in.click("#nav a[href='/failures/']")
    signed_in.click("#failures a.subject")
    live(signed_in)
    return signed_in


def fail(number: int) -> None:
    for one in range(number):
        place_order(Destination.BOTH, f"{one} MWh {HARMFUL[one]}")
    drain()


def test_s5_1_a_group_opens_and_grows_while_it_is_looked_at(group: Page) -> None:
    chip = group.locator("#failure-group .chip.c-failed").first
    expect(chip).to_have_text("3 failed")
    expect(group.locator("#members tbody tr")).to_have_count(3)

    fail(1)

    expect(chip).to_have_text("4 failed")
    expect(group.locator("#members tbody tr")).to_have_count(4)


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_scrolls_sideways(group: Page, width: int) -> None:
    group.set_viewport_size({"width": width, "height": 900})
    for address in ("/failures/", "/failures/?show=resolved", group.url):
        group.goto(address)
        across = group.evaluate("document.documentElement.scrollWidth")
        assert across <= width


def test_s5_3_a_group_is_marked_as_handled_and_comes_back(group: Page) -> None:
    group.click("#mark_handled-button")
    group.fill("#mark_handled-dialog textarea", "the exchange is down until noon")
    group.fill("#mark_handled-days", "2")
    group.click("#mark_handled-dialog button[type=submit]")
    header = group.locator("#failure-group .header")
    expect(header).to_contain_text("the exchange is down until noon")
    expect(group.locator("#unmark_handled-button")).to_be_visible()

    group.goto("/failures/")
    expect(group.locator("#failures tbody tr")).to_have_count(0)
    group.click("#failures a[href*='show=handled']")
    expect(group.locator("#failures tbody tr")).to_have_count(1)
    group.goto("/failures/")
    live(group)
    fail(1)

    expect(group.locator("#failures tbody tr")).to_have_count(1)
    expect(group.locator("#failures tbody tr")).to_contain_text("is back")
