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
    for address in ("/failures/", group.url):
        group.goto(address)
        across = group.evaluate("document.documentElement.scrollWidth")
        assert across <= width
