"""S4, the history in a browser: what was written together, what came of a row, and no row of another process."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.messages import Destination
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, run
from tests.browser.orders import placed
from tests.browser.pressing import opened, press

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

ROWS = "#history tbody tr"


def retried(page: Page) -> None:
    """Press Retry, and have done what follows."""
    press(page, "retry", "the exchange is back")
    expect(page.locator("#flash")).to_contain_text("Trying again")
    run()


def marks(rows: Locator) -> list[str]:
    return [
        mark.removeprefix("#") for mark in rows.locator(".commit").all_inner_texts()
    ]


def test_s4_2_rows_of_deadlines_and_retries_lead_to_the_row_that_came_of_them(
    signed_in: Page,
) -> None:
    order = placed(Destination.BOTH)
    pass_time(minutes=11)
    run()
    signed_in.set_viewport_size({"width": 1024, "height": 300})
    opened(signed_in, order)
    retried(signed_in)
    process = ProcessInstance.objects.get(pk=order.process_id)
    # What still comes to the page would move what is looked at.
    newest = str(process.revision)
    expect(signed_in.locator("#state")).to_have_attribute("data-revision", newest)
    expect(signed_in.locator(f"#revision-{newest}")).to_be_attached()
    passed = process.checkpoints.get(cause__startswith="deadline:").revision

    action = signed_in.locator(ROWS, has_text="Retry by operator")
    expect(action).to_have_count(1)
    [mark] = marks(action)
    for row, led_to in (
        (signed_in.locator("#revision-1"), passed),
        (signed_in.locator(f"#revision-{mark}"), int(mark) + 1),
    ):
        link = row.locator("a.leads-to")
        number = re.fullmatch(r"led to #(\d+)", link.inner_text().strip())
        assert number is not None
        assert int(number[1]) == led_to
        target = signed_in.locator(f"#revision-{number[1]}")
        signed_in.evaluate("scrollTo(0, 0)")
        expect(target).not_to_be_in_viewport()
        link.evaluate("link => link.click()")
        expect(target).to_be_in_viewport()
        expect(target).to_be_focused()
