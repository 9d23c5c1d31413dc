"""On paper a page has what can be read, and nothing that is to be pressed; values keep their own direction."""

from collections.abc import Sequence
from io import BytesIO

import pytest
from playwright.sync_api import Page, expect
from pypdf import PageObject, PdfReader

from examples.order_listing.messages import Destination
from tests.browser.orders import placed
from tests.browser.pressing import opened

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

PRESSED = ["SVG", "JSON", "Follow", "Fit", "Close", "Retry", "Repair"]


def printed_on(page: Page) -> Sequence[PageObject]:
    """Return the sheets of a page on paper of 210 by 297 millimetres."""
    browser = page.context.browser
    # To Firefox, Playwright gives inches as centimetres.
    unit = "in" if browser and browser.browser_type.name == "firefox" else "cm"
    return PdfReader(BytesIO(page.pdf(width=f"21{unit}", height=f"29.7{unit}"))).pages


def test_a_process_on_paper_has_nothing_to_press(signed_in: Page) -> None:
    opened(signed_in, placed(Destination.EXTERNAL))
    opened(signed_in, f"{signed_in.url}?step=AwaitingExternalCreation")
    signed_in.emulate_media(media="print")
    kept = [
        word
        for word in PRESSED
        if signed_in.get_by_text(word, exact=True).filter(visible=True).count()
    ]
    assert kept == []
    expect(signed_in.locator(".picture").first).to_be_visible()
    sheet = signed_in.locator("#panel > .of-step")
    expect(sheet).to_be_visible()
    assert sheet.evaluate("one => getComputedStyle(one).position") == "static"


def test_a_printed_process_has_its_picture_and_nothing_to_press(
    signed_in: Page,
) -> None:
    opened(signed_in, placed(Destination.EXTERNAL))
    texts = [sheet.extract_text() for sheet in printed_on(signed_in)]
    assert "Awaiting internal" in texts[0]  # the diagram is on the first sheet
    printed = [line.strip() for line in "\n".join(texts).splitlines()]
    assert [word for word in PRESSED if word in printed] == []
    assert {"Awaiting internal", "HISTORY 2 transitions"} <= set(printed)


def test_a_key_from_right_to_left_does_not_turn_the_words_beside_it(
    signed_in: Page,
) -> None:
    key = "\u05d4\u05d6\u05de\u05e0\u05d4"
    placed(Destination.INTERNAL, key)
    opened(signed_in, "/processes/")
    link = signed_in.locator("#rows a.subject")
    expect(link).to_have_text(key)
    assert link.evaluate("one => getComputedStyle(one).unicodeBidi") == "isolate"
