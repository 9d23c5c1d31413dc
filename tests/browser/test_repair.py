"""Repair mode, used by an operator in a browser, with scripts and without."""

import os
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from orchestrator.engine.drain import drain
from orchestrator.engine.operations import stage
from orchestrator.models import OperatorAction, ProcessInstance
from tests.browser.samples import orders
from tests.browser.test_pages import coloured, complaints
from tests.services.site import Site

__all__ = ["coloured"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

MOVE = {"edit": "move", "target": "AwaitingExternalListing"}


@pytest.fixture
def order(transactional_db: None) -> ProcessInstance:
    """Return an order whose command has failed."""
    return ProcessInstance.objects.get(pk=orders()["failed"].process_id)


@pytest.fixture
def without_scripts(
    browser: Browser, live_site: Site, operator: User
) -> Iterator[Page]:
    context = browser.new_context(base_url=live_site.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(live_site.link(operator))
    yield page
    context.close()


def repaired(page: Page, order: ProcessInstance) -> None:
    """Stage a move, undo it, stage it again with other data, and apply both."""
    page.goto(f"/processes/{order.pk}/repair/")
    expect(page.locator(".repairing")).to_contain_text("Repair mode")
    page.select_option("#move-target", "AwaitingExternalListing")
    page.click("form:has(#move-target) button")
    expect(page.locator(".step.has-ghost")).to_have_count(1)
    page.click("#summary .staged button")
    expect(page.locator(".step.has-ghost")).to_have_count(0)

    page.select_option("#move-target", "AwaitingExternalListing")
    page.click("form:has(#move-target) button")
    expect(page.locator(".step.has-ghost")).to_have_count(1)
    data = page.input_value("#data-value").replace('"50 MWh"', '"60 MWh"')
    page.fill("#data-value", data)
    page.click("form:has(#data-value) button")
    expect(page.locator("#summary .staged li")).to_have_count(2)
    page.reload()
    expect(page.locator("#summary .staged li")).to_have_count(2)
    if place := os.environ.get("PICTURES"):
        page.screenshot(path=f"{place}/staged.png", full_page=True)
    page.fill("#apply-reason", "the exchange has it already")
    page.click("#apply button[type=submit]")

    expect(page).to_have_url(f"{page.url.split('/processes')[0]}/processes/{order.pk}/")
    order.refresh_from_db()
    assert order.step == "AwaitingExternalListing"
    assert OperatorAction.objects.get(action="repair").result == "done"
    drain()  # what the step takes of what was parked


def test_s7_1_edits_are_staged_undone_and_applied(
    signed_in: Page, order: ProcessInstance
) -> None:
    repaired(signed_in, order)


def test_s7_1_the_same_without_scripts(
    without_scripts: Page, order: ProcessInstance
) -> None:
    repaired(without_scripts, order)


def test_s7_1_what_is_staged_is_readable_by_everybody_at_every_width(
    coloured: Page, order: ProcessInstance, operator: User
) -> None:
    stage(
        order, operator, {"edit": "data", "value": {**order.data, "reason": "x" * 300}}
    )
    stage(order, operator, MOVE)
    stage(order, operator, {"edit": "retry"})
    for width in (390, 1024, 1440):
        coloured.set_viewport_size({"width": width, "height": 900})
        coloured.goto(f"/processes/{order.pk}/repair/")
        assert coloured.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints(coloured) == []
        if place := os.environ.get("PICTURES"):
            coloured.screenshot(path=f"{place}/{width}.png", full_page=True)
