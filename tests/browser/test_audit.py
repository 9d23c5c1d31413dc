"""S12.2, the audit, in a browser: who cancelled what yesterday, as a file too, and dialogs that leave nothing there."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from orchestrator.engine.operations import cancel, escalate
from orchestrator.models import OperatorAction
from tests.browser.conftest import live
from tests.browser.orders import placed
from tests.browser.samples import HARMFUL
from tests.services.asking import asked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def audited(signed_in: Page) -> Page:
    """The first page; yesterday one order was cancelled for harmful reasons, today it is another's turn."""
    for number, action in ((1, cancel), (2, escalate)):
        order = placed(Destination.EXTERNAL, f"A-{number}")
        request = asked(reason=" ".join(HARMFUL), address="192.0.2.7")
        action(order.process_id, request=request)
    noon = timezone.localtime().replace(hour=12) - timedelta(days=1)
    OperatorAction.objects.filter(action="cancel").update(at=noon)
    signed_in.goto("/")
    return signed_in


def test_s12_2_who_cancelled_what_yesterday_is_two_clicks_away(audited: Page) -> None:
    for target in ("#nav a[href='/audit/']", "#tallies a:has-text('Cancel process')"):
        audited.click(target)

    rows = audited.locator("#audit tbody tr")
    expect(rows).to_have_count(1)
    for text in ("operator", "192.0.2.7", "Cancel process", "A-1", HARMFUL[0]):
        expect(rows).to_contain_text(text)
    expect(audited.locator(".chips .chip:has-text('Yesterday')")).to_have_count(1)
    assert "when=yesterday" in audited.url
    # A chip is a link: it is reached and followed without a mouse.
    audited.locator(".chips a:has-text('Yesterday')").focus()
    audited.keyboard.press("Enter")
    audited.wait_for_url("**/audit/?action=cancel")
    with audited.expect_download() as started:
        audited.click("#audit a:has-text('JSON')")
    lines = started.value.path().read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["A-1"]
    assert audited.locator("#planted").count() == 0


def test_s12_2_a_process_leads_to_its_rows_and_a_dialog_has_none(audited: Page) -> None:
    there = OperatorAction.objects.count()
    audited.goto("/processes/?status=live")
    audited.click("#rows a.subject")
    live(audited)
    buttons = audited.locator(".head [data-opens]:not([aria-disabled])")
    for one in range(buttons.count()):
        buttons.nth(one).click()
        expect(audited.locator("dialog[open]")).to_have_count(1)
        audited.keyboard.press("Escape")
    assert buttons.count() > 2
    assert OperatorAction.objects.count() == there

    audited.click("#header a[href^='/audit/']")

    expect(audited.locator("#audit tbody tr")).to_have_count(1)
    expect(audited.locator("#audit tbody tr")).to_contain_text("Escalate")
