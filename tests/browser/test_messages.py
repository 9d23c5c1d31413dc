"""The messages of a process in a browser: an arrow for each, live, inside its row at every width."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import WIDTHS
from tests.browser.orders import waiting_order, went_on
from tests.browser.pressing import opened

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


def test_messages_are_arrows_in_rows_and_a_new_one_appears(signed_in: Page) -> None:
    order = waiting_order()
    opened(signed_in, order)
    signed_in.get_by_role("link", name="Messages").click()
    signed_in.wait_for_url("**/messages/")
    opened(signed_in, signed_in.url)
    rows = signed_in.locator(".flow .message")
    before = rows.count()
    assert before > 1

    went_on(order)

    expect(rows).not_to_have_count(before)
    expect(signed_in.locator(".flow .k-event").last).to_contain_text("from exchange")
    for width in WIDTHS:
        signed_in.set_viewport_size({"width": width, "height": 900})
        signed_in.reload()
        for row in rows.all():
            box, words = row.bounding_box(), row.locator("text").bounding_box()
            assert box
            assert words
            assert words["x"] >= box["x"] - 1
            assert words["x"] + words["width"] <= box["x"] + box["width"] + 1
