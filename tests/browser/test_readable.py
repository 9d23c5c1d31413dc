"""A diagram whose words would be too small to read opens around where its process is."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.orders import failed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

LETTERS = """box => {
    const text = box.querySelector("[data-node] text");
    return parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
}"""


def opened_at(page: Page, width: int) -> Locator:
    """Open an order's page in a window that is so wide; its diagram."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/processes/{failed()[0].process_id}/")
    return page.locator("[data-pans][data-moves]").first


@pytest.mark.parametrize("width", [390, 200])
def test_it_opens_readable_and_fit_shows_all_of_it(signed_in: Page, width: int) -> None:
    box = opened_at(signed_in, width)

    readable = f"box => ({LETTERS})(box) >= 7.9"
    signed_in.wait_for_function(readable, arg=box.element_handle())

    frame, step = box.bounding_box(), box.locator(".is-current").first.bounding_box()
    assert frame
    assert step
    middle = step["x"] + step["width"] / 2
    assert frame["x"] <= middle <= frame["x"] + frame["width"]
    signed_in.get_by_role("button", name="Fit").click()
    signed_in.wait_for_function(
        """box => {
            const frame = box.getBoundingClientRect();
            return [...box.querySelectorAll("[data-node]")].every((step) => {
                const { left, right } = step.getBoundingClientRect();
                return left >= frame.left - 1 && right <= frame.right + 1;
            });
        }""",
        arg=box.element_handle(),
    )


def test_what_can_be_read_opens_whole(signed_in: Page) -> None:
    picture = opened_at(signed_in, 1440).locator("svg")
    expect(picture).to_be_visible()

    moved = picture.evaluate("picture => getComputedStyle(picture).transform")
    assert moved in ("none", "matrix(1, 0, 0, 1, 0, 0)")
