"""Watching a process: its page says that it has moved while nobody looks at it."""

import re

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from tests.browser.conftest import live
from tests.browser.orders import waiting_order, went_on
from tests.browser.pressing import opened
from tests.services.patience import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

HIDDEN = """(hidden) => {
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
NOTED = """() => {
    window.notices = [];
    window.Notification = class extends EventTarget {
        static permission = "granted";
        constructor(title, given) { super(); window.notices.push([title, given.body]); }
    };
}"""
"""Notes what the system would be told to show: a browser without windows shows no notices."""


@pytest.fixture
def order(signed_in: Page) -> Order:
    """Open the page of an order that waits, from which notices may come."""
    found = waiting_order(Destination.BOTH)
    opened(signed_in, found)
    signed_in.evaluate(NOTED)
    return found


def told(page: Page) -> list[str]:
    """Return what the notices say, in their order."""
    return [text for _title, text in page.evaluate("window.notices")]


def icon(page: Page) -> str:
    return str(page.locator("link[rel=icon]").get_attribute("href"))


def test_a_watched_process_says_that_it_moved_in_tab_icon_and_notice(
    order: Order, signed_in: Page
) -> None:
    own = icon(signed_in)
    watch = signed_in.get_by_role("button", name="Watch")
    watch.click()
    expect(watch).to_have_attribute("aria-pressed", "true")
    signed_in.evaluate(HIDDEN, arg=True)

    went_on(order)

    expect(signed_in).to_have_title(re.compile("^● .* Completed "))
    assert "icon-moved" in icon(signed_in)
    # The title may come before the rest of the page.
    wait_for(lambda: told(signed_in)[-1:] == ["Completed · Completed"], 10)

    signed_in.evaluate(HIDDEN, arg=False)
    expect(signed_in).to_have_title(re.compile("^[^●].* Completed "))
    assert icon(signed_in) == own


def test_a_reload_goes_on_watching_and_who_looks_on_is_not_told(
    order: Order, signed_in: Page
) -> None:
    watch = signed_in.get_by_role("button", name="Watch")
    watch.focus()
    signed_in.keyboard.press("Enter")
    signed_in.reload()
    live(signed_in)
    signed_in.evaluate(NOTED)
    expect(watch).to_have_attribute("aria-pressed", "true")

    went_on(order)

    expect(signed_in.locator(".head .chip").first).to_have_text("Completed")
    expect(signed_in).to_have_title(re.compile("^[^●]"))
    assert told(signed_in) == []


def test_a_hidden_unwatched_page_stays_as_it_was(order: Order, signed_in: Page) -> None:
    signed_in.evaluate(HIDDEN, arg=True)
    went_on(order)
    signed_in.wait_for_timeout(1500)

    assert not signed_in.title().startswith("●")
    chip = signed_in.locator(".head .chip").first
    expect(chip).not_to_have_text("Completed")
    signed_in.evaluate(HIDDEN, arg=False)
    expect(chip).to_have_text("Completed")
