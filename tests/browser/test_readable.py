"""A diagram whose words would be too small to read opens around where its process is."""

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.models import Order
from tests.browser.samples import orders

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

LETTERS = """box => {
    const text = box.querySelector("[data-node] text");
    return parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
}"""
PHONE = {"width": 390, "height": 844}
NARROW = {"width": 200, "height": 844}


@pytest.fixture
def placed(transactional_db: None) -> dict[str, Order]:
    return orders()


def diagram(page: Page) -> Locator:
    return page.locator("[data-pans][data-moves]").first


@pytest.mark.parametrize("size", [PHONE, NARROW], ids=["phone", "narrow"])
def test_it_opens_where_it_can_be_read_and_fit_shows_all_of_it(
    placed: dict[str, Order], signed_in: Page, size: dict[str, int]
) -> None:
    signed_in.set_viewport_size({"width": size["width"], "height": size["height"]})
    signed_in.goto(f"/processes/{placed['failed'].process_id}/")
    box = diagram(signed_in)

    signed_in.wait_for_function(
        f"box => ({LETTERS})(box) >= 7.9", arg=box.element_handle()
    )

    frame, step = box.bounding_box(), box.locator(".is-current").first.bounding_box()
    assert frame is not None
    assert step is not None
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


def test_what_can_be_read_opens_whole(
    placed: dict[str, Order], signed_in: Page
) -> None:
    signed_in.set_viewport_size({"width": 1440, "height": 1000})
    signed_in.goto(f"/processes/{placed['failed'].process_id}/")
    box = diagram(signed_in)
    expect(box).to_be_visible()

    assert signed_in.evaluate(
        "box => getComputedStyle(box.querySelector('svg')).transform",
        box.element_handle(),
    ) in ("none", "matrix(1, 0, 0, 1, 0, 0)")
