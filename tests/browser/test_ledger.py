"""S4, the ledger in a browser: what was written together, what came of a row, and nobody else's rows."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from orchestrator.engine.drain import drain
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time
from tests.browser.conftest import IN_PROCESS_TOO, live
from tests.browser.orders import created_outside

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

ROWS = "#ledger tbody tr"


def placed(
    description: str = "50 MWh",
    order_id: str = "",
    destination: Destination = Destination.BOTH,
) -> Order:
    order = place_order(destination, description, order_id)
    drain()
    return order


def opened(page: Page, order: Order) -> None:
    page.goto(f"/processes/{order.process_id}/")
    live(page)


def retried(page: Page) -> None:
    """Press Retry, and have done what follows."""
    page.click("#retry-button")
    page.fill("#retry-dialog textarea", "the exchange is back")
    page.click("#retry-dialog button[type=submit]")
    expect(page.locator("#flash")).to_contain_text("Trying again")
    drain()


def marks(rows: Locator) -> list[str]:
    return [
        mark.removeprefix("#") for mark in rows.locator(".commit").all_inner_texts()
    ]


@IN_PROCESS_TOO
def test_s4_1_a_row_has_what_arrived_changed_and_was_issued_and_the_mark_of_its_commit(
    signed_in: Page,
) -> None:
    opened(signed_in, placed())
    expect(signed_in.locator("#ledger thead th")).to_have_text(
        ["Time", "What arrived", "What changed", "What was issued"]
    )
    first = signed_in.locator("#revision-1 > td")
    expect(first.nth(1)).to_contain_text("OrderCreated")
    expect(first.nth(2)).to_contain_text("50 MWh")
    expect(first.nth(3)).to_contain_text("RequestExternalCreation")

    retried(signed_in)

    action = signed_in.locator(ROWS, has_text="Retry by operator")
    expect(action).to_have_count(1)
    [mark] = marks(action)
    together = signed_in.locator(ROWS).filter(
        has=signed_in.locator(f"[data-commit='{mark}']")
    )
    expect(together).to_have_count(2)
    expect(signed_in.locator(f"#revision-{mark} .commit")).to_have_text(f"#{mark}")
    # Rows of other commits have other marks, each its own.
    others = [one for one in marks(signed_in.locator(ROWS)) if one != mark]
    assert others
    assert len(others) == len(set(others))


def test_s4_2_rows_of_deadlines_and_retries_lead_to_the_row_that_came_of_them(
    signed_in: Page,
) -> None:
    order = placed()
    pass_time(minutes=11)
    drain()
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


@IN_PROCESS_TOO
def test_s4_5_two_processes_of_one_key_are_two_pages_and_move_each_by_itself(
    signed_in: Page,
) -> None:
    ended = placed("first of them", "O-1", Destination.INTERNAL)
    other = placed("second of them", "O-1-again")
    ProcessInstance.objects.filter(pk=other.process_id).update(correlation_key="O-1")
    signed_in.goto("/processes/?q=O-1")
    expect(signed_in.locator("#rows a.subject")).to_have_text(["O-1", "O-1"])
    another = signed_in.context.new_page()
    opened(signed_in, ended)
    opened(another, other)
    before = signed_in.locator("#ledger").inner_text()

    created_outside(other)
    while drain():
        pass

    expect(another.locator("#n_Completed.is-current")).to_be_visible()
    opened(signed_in, ended)
    assert signed_in.locator("#ledger").inner_text() == before
    for page, own, foreign in (
        (signed_in, "first of them", "second of them"),
        (another, "second of them", "first of them"),
    ):
        expect(page.locator("#ledger")).to_contain_text(own)
        expect(page.locator("body")).not_to_contain_text(foreign)
