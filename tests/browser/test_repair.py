"""Repair mode, used by an operator in a browser, with scripts and without."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from orchestrator.engine.operations import stage
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.testing import run
from tests.browser.conftest import fits
from tests.browser.samples import orders
from tests.browser.test_pages import complaints

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

MOVE = {"edit": "move", "target": "AwaitingExternalListing"}


@pytest.fixture
def order(transactional_db: None) -> ProcessInstance:
    """Return an order whose command has failed."""
    return ProcessInstance.objects.get(pk=orders()["failed"].process_id)


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
    page.fill("#apply-reason", "the exchange has it already")
    page.click("#apply button[type=submit]")

    expect(page).to_have_url(f"{page.url.split('/processes')[0]}/processes/{order.pk}/")
    order.refresh_from_db()
    assert order.step == "AwaitingExternalListing"
    assert OperatorAction.objects.get(action="repair").result == "done"
    run()  # what the step takes of what was parked


def test_s7_1_edits_are_staged_undone_and_applied(
    signed_in: Page, order: ProcessInstance
) -> None:
    repaired(signed_in, order)


def test_s7_1_without_scripts(without_scripts: Page, order: ProcessInstance) -> None:
    repaired(without_scripts, order)


def test_s7_1_what_is_staged_is_readable_by_everybody_at_every_width(
    checked: Page, order: ProcessInstance, operator: User
) -> None:
    data = {**order.data, "reason": "x" * 300}
    stage(order, operator, {"edit": "data", "value": data})
    stage(order, operator, MOVE)
    stage(order, operator, {"edit": "retry"})
    checked.goto(f"/processes/{order.pk}/repair/")
    for theme in ("light", "dark"):
        checked.emulate_media(color_scheme=theme)
        assert complaints(checked) == []
    fits(checked)
