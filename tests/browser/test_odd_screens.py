"""The pages on narrow screens, and with the few colours that a system allows."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from tests.browser.orders import failed, placed, waiting_order
from tests.browser.pressing import opened, press
from tests.services.site import live_site

__all__ = ["live_site"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

COLOUR = "(one, name) => getComputedStyle(one).getPropertyValue(name)"

GREY = """() => {
    const probe = document.createElement("i");
    probe.style.color = "GrayText";
    document.body.append(probe);
    return getComputedStyle(probe).color;
}"""
"""The colour that the system gives what cannot be pressed."""

BROKEN_WORDS = """() => [...document.querySelectorAll(".chip, th, nav a, .tabs a, button, .button")].flatMap((one) => {
    const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
        for (const word of walker.currentNode.data.matchAll(/[^\\s]+/g)) {
            const range = document.createRange();
            range.setStart(walker.currentNode, word.index);
            range.setEnd(walker.currentNode, word.index + word[0].length);
            const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
            if (lines.size > 1) found.push(word[0]);
        }
    }
    return found;
})"""
"""Words of the console that are on two lines."""


def test_with_the_colours_of_a_system_a_disabled_button_is_grey_and_a_legend_has_its_own(
    signed_in: Page,
) -> None:
    order = placed(Destination.INTERNAL)
    opened(signed_in, f"/processes/{order.process_id}/?at=0")
    disabled = signed_in.locator("button[aria-disabled=true]").first
    swatch = signed_in.locator(".swatch.s-waiting").first
    before = swatch.evaluate(COLOUR, "border-top-color")

    signed_in.emulate_media(forced_colors="active")

    assert disabled.evaluate(COLOUR, "color") == signed_in.evaluate(GREY)
    assert disabled.evaluate(COLOUR, "border-top-style") == "dashed"
    assert swatch.evaluate(COLOUR, "border-top-color") == before


@pytest.mark.parametrize("width", [390, 1440])
def test_the_answer_is_in_sight_wherever_the_button_was(
    signed_in: Page, width: int
) -> None:
    signed_in.set_viewport_size({"width": width, "height": 700})
    opened(signed_in, waiting_order())
    press(signed_in, "pause", "a holiday")
    answer = signed_in.locator("#flash .notice")
    expect(answer).to_contain_text("Paused")

    for place in ("document.body.scrollHeight", "0"):
        signed_in.evaluate(f"window.scrollTo(0, {place})")
        expect(answer).to_be_in_viewport(ratio=1)


def test_at_320_pixels_no_page_is_wider_and_no_word_is_broken(signed_in: Page) -> None:
    signed_in.set_viewport_size({"width": 320, "height": 700})
    order = placed(Destination.INTERNAL)
    failed(1)
    pages = ["/", "/processes/", "/failures/", "/events/", "/waits/", "/decisions/"]
    pages += ["/definitions/order-listing/", f"/processes/{order.process_id}/"]
    wrong = dict[str, object]()
    for address in pages:
        opened(signed_in, address)
        broken = signed_in.evaluate(BROKEN_WORDS)
        wide = signed_in.evaluate("document.documentElement.scrollWidth")
        if broken or wide > 320:
            wrong[address] = broken, wide

    assert wrong == {}
