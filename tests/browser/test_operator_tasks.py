"""What operators come for, counted in clicks from the first page: why one has failed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.messages import Destination, RequestExternalCreation
from orchestrator import CommandContext, Permanent
from orchestrator.models import Incident
from orchestrator.testing import replaced
from tests.browser.conftest import fits
from tests.browser.orders import placed
from tests.browser.pressing import opened
from tests.services.hired import hire_for_long
from tests.services.site import live_site

__all__ = ["live_site"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

ERROR = "no exchange is configured"
INNERMOST = 'raise Permanent("no exchange is configured'
"""The line in which an order fails, where there is no exchange."""

SEEN = """(trace, text) => {
    const words = trace.firstChild;
    const range = document.createRange();
    const at = words.data.lastIndexOf(text);
    range.setStart(words, at);
    range.setEnd(words, at + text.length);
    const line = range.getBoundingClientRect();
    const seen = document.elementFromPoint(line.x + line.width / 2, line.y + line.height / 2);
    return at >= 0 && seen === trace;
}"""
"""Whether these words of a trace are in the window, and in the part of the trace that its box shows."""


@dataclass
class Hand:
    """A hand on a page: it clicks, types, and counts its clicks."""

    page: Page
    clicks: int = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def find(self, text: str) -> None:
        """Write into the box above the page, and press Enter."""
        self.click(self.page.locator(".find input"))
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")


@pytest.fixture
def hand(signed_in: Page) -> Hand:
    """A hand on the first page, which begins with the failures as soon as there are any."""
    hire_for_long()
    opened(signed_in, "/")
    return Hand(signed_in)


def refused(command: RequestExternalCreation, context: CommandContext) -> None:
    """Fails for another cause."""
    raise Permanent("the exchange does not know this trader")


def says_why(shown: Locator) -> None:
    """The innermost line of the trace can be read there, and where it stands."""
    trace = shown.locator("pre", has_text=INNERMOST)
    expect(trace).to_be_visible()
    expect(trace).to_contain_text("exchange_client.py")
    trace.scroll_into_view_if_needed()
    assert trace.evaluate(SEEN, INNERMOST)


def test_why_the_one_that_failed_has_failed_is_two_clicks_away(hand: Hand) -> None:
    page = hand.page
    placed(Destination.BOTH, "A-1")
    group = page.locator("#headline").get_by_role("link", name="Open the group")
    expect(group).to_be_visible()

    hand.click(group)
    row = page.locator("#members tr", has_text="A-1")
    expect(row).to_contain_text(ERROR)
    hand.click(row.locator("summary", has_text="detail"))

    says_why(row)
    assert hand.clicks <= 2


def test_why_this_one_of_many_has_failed_is_two_clicks_away(hand: Hand) -> None:
    page = hand.page
    order = placed(Destination.BOTH, "A-1")
    with replaced("RequestExternalCreation", refused):
        for number in range(2, 5):
            placed(Destination.BOTH, f"A-{number}")
    assert Incident.objects.values("fingerprint").distinct().count() == 2
    expect(page.locator("#headline")).to_contain_text("does not know this trader")

    hand.find("A-1")
    page.wait_for_url(f"**/processes/{order.process_id}/")
    header = page.locator("#header")
    expect(header.locator(".trouble")).to_contain_text(ERROR)
    hand.click(header.locator("summary", has_text="detail"))

    says_why(header)
    assert hand.clicks <= 2
    fits(page)
