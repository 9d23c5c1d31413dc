"""Keys: a sheet says what they do, each does it, none acts while somebody writes, and they can be turned off."""

import re

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.models import Order
from tests.browser.samples import orders

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture(autouse=True)
def placed(transactional_db: None) -> dict[str, Order]:
    return orders()


def sheet_of(page: Page) -> list[str]:
    """What the open sheet says, key by key."""
    rows = page.locator("#keys dl div:visible")
    return [re.sub(r"\s+", " ", text).strip() for text in rows.all_inner_texts()]


def test_a_sheet_says_what_the_keys_of_this_page_do(
    placed: dict[str, Order], signed_in: Page
) -> None:
    signed_in.goto("/processes/?status=failed")
    signed_in.keyboard.press("?")
    listed = sheet_of(signed_in)
    assert "j Next row" in listed
    assert "w Watch" not in listed
    signed_in.keyboard.press("Escape")
    expect(signed_in.locator("#keys")).to_be_hidden()

    signed_in.goto(f"/processes/{placed['failed'].process_id}/")
    signed_in.get_by_role("button", name="Keyboard").click()

    shown = sheet_of(signed_in)
    assert "w Watch" in shown
    assert "r Retry: of this row, or the topmost" in shown


def test_every_page_of_the_menu_has_its_keys(signed_in: Page) -> None:
    signed_in.goto("/")
    links = signed_in.locator("nav [data-go-key]")
    keys = [str(link.get_attribute("data-go-key")) for link in links.all()]
    paths = [str(link.get_attribute("href")) for link in links.all()]
    signed_in.keyboard.press("?")
    listed = sheet_of(signed_in)
    assert [row[:3] for row in listed[: len(keys)]] == [f"g {key}" for key in keys]
    signed_in.keyboard.press("Escape")
    expect(signed_in.locator("#keys")).to_be_hidden()

    for key, path in zip(keys, paths, strict=True):
        with signed_in.expect_navigation():  # the first leads to where it is already
            signed_in.keyboard.press("g")
            signed_in.keyboard.press(key)
        assert signed_in.url.endswith(path)

    assert len(set(keys)) == len(keys) == 8


def test_from_row_to_row_and_into_one(signed_in: Page) -> None:
    signed_in.goto("/processes/")
    rows = signed_in.locator("#rows tr a.subject")
    signed_in.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    signed_in.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    signed_in.keyboard.press("k")
    signed_in.keyboard.press("k")
    expect(rows.nth(0)).to_be_focused()
    wanted = str(rows.nth(0).get_attribute("href"))

    signed_in.keyboard.press("Enter")

    signed_in.wait_for_url(f"**{wanted}")


def test_a_forbidden_button_says_why(placed: dict[str, Order], signed_in: Page) -> None:
    signed_in.goto(f"/processes/{placed['completed'].process_id}/")

    signed_in.keyboard.press("r")

    expect(signed_in.locator("dialog[open]")).to_have_count(0)
    focused = signed_in.locator("[data-key=r]:focus")
    expect(focused).to_have_attribute("aria-disabled", "true")


def test_a_box_to_tick_is_no_place_where_somebody_writes(signed_in: Page) -> None:
    signed_in.goto("/processes/")
    signed_in.evaluate(
        "document.querySelectorAll('main details').forEach((each) => each.open = true)"
    )
    signed_in.locator("main input[type=checkbox]").first.focus()

    signed_in.keyboard.press("j")

    expect(signed_in.locator("#rows tr a.subject").first).to_be_focused()


def test_no_key_acts_while_somebody_writes_or_where_turned_off(signed_in: Page) -> None:
    signed_in.goto("/processes/")
    signed_in.keyboard.press("/")
    box = signed_in.locator(".find input")
    expect(box).to_be_focused()
    signed_in.keyboard.type("g?jr/")
    expect(box).to_have_value("g?jr/")
    expect(signed_in.locator("#keys")).to_be_hidden()
    signed_in.get_by_role("button", name="Keyboard").click()
    signed_in.get_by_label("Single keys act").uncheck()
    signed_in.keyboard.press("Escape")

    signed_in.reload()
    signed_in.keyboard.press("?")
    signed_in.keyboard.press("j")

    expect(signed_in.locator("#keys")).to_be_hidden()
    expect(signed_in.locator("#rows a.subject").first).not_to_be_focused()
    signed_in.get_by_role("button", name="Keyboard").click()
    expect(signed_in.get_by_label("Single keys act")).not_to_be_checked()
