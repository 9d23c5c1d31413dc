"""Pause, Resume and Assign, pressed by an operator in a browser."""

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.models import OperatorAction, ProcessInstance
from tests.browser.conftest import live
from tests.browser.orders import WHAT, started
from tests.services.exchange import ExchangeProcess
from tests.services.workers import Workers

pytestmark = pytest.mark.once


@pytest.fixture
def order(
    exchange: ExchangeProcess, workers: Workers, signed_in: Page
) -> ProcessInstance:
    """Return an order whose page is open, and which waits for an exchange that says nothing."""
    exchange.behave(shortest=3600.0, longest=3600.0)
    placed = place_order(Destination.BOTH, WHAT)
    started(placed)
    signed_in.goto(f"/processes/{placed.process_id}/")
    live(signed_in)
    return ProcessInstance.objects.get(pk=placed.process_id)


def test_a_process_is_paused_and_resumed_without_loading_the_page_again(
    order: ProcessInstance, signed_in: Page
) -> None:
    page = signed_in
    expect(page.locator("#unpause-button")).to_have_count(0)
    expect(page.locator("#now time.countdown")).to_be_visible()
    page.evaluate("window.still = true")

    page.click("#pause-button")
    # A process manager has no sub-processes.
    expect(page.locator("#pause-children")).to_have_count(0)
    page.fill("#pause-dialog textarea", "the exchange is being moved")
    page.click("#pause-dialog .acts button:last-child")

    expect(page.locator("#header .chip").first).to_contain_text("Paused")
    expect(page.locator("#header .notice")).to_contain_text("Paused since")
    expect(page.locator("#header .notice")).to_contain_text("left when it goes on")
    expect(page.locator("#pause-button")).to_have_count(0)
    expect(page.locator("#now time.countdown")).to_have_count(0)
    expect(page.locator("#ledger")).to_contain_text("Pause by operator")

    page.click("#unpause-button")
    page.fill("#unpause-dialog textarea", "it has been moved")
    page.click("#unpause-dialog .acts button:last-child")

    expect(page.locator("#pause-button")).to_be_visible()
    expect(page.locator("#header .notice")).to_have_count(0)
    expect(page.locator("#header .chip").first).to_contain_text("Waiting")
    expect(page.locator("#now time.countdown")).to_be_visible()
    assert page.evaluate("window.still")
    done = OperatorAction.objects.order_by("pk").values_list("action", "result")
    assert list(done) == [("pause", "done"), ("unpause", "done")]


def test_a_process_is_assigned_to_oneself_and_found_by_that(
    order: ProcessInstance, signed_in: Page
) -> None:
    page = signed_in
    expect(page.locator("#header .facts")).to_contain_text("Owner nobody")

    page.click("#assign-button")
    expect(page.locator("#assign-person")).to_have_value("operator")
    expect(page.locator("#assign-dialog textarea")).to_have_count(0)
    page.click("#assign-dialog .acts button:last-child")

    expect(page.locator("#header .facts")).to_contain_text("Owner operator")
    page.goto("/processes/?owner=me")
    row = page.locator(f"[data-row='{order.pk}']")
    expect(row.get_by_role("cell", name="operator", exact=True)).to_be_visible()
    page.goto("/processes/?owner=nobody")
    expect(page.locator(f"[data-row='{order.pk}']")).to_have_count(0)
