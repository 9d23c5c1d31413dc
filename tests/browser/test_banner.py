"""Work without workers is told on a page that is open, and not told any more when they are back."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from orchestrator.models import Worker
from tests.browser.conftest import fits
from tests.services.hired import hire

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

LOOK_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


def heard_of(seconds_ago: float) -> None:
    seen_at = timezone.now() - timedelta(seconds=seconds_ago)
    Worker.objects.update(seen_at=seen_at)


def test_a_worker_that_dies_is_missed_on_an_open_page(signed_in: Page) -> None:
    hire()
    signed_in.goto("/failures/")
    banner = signed_in.locator("#banner")
    expect(banner).to_be_empty()

    heard_of(3600)
    signed_in.evaluate(LOOK_AGAIN)
    expect(banner).to_contain_text("No worker lives")
    fits(signed_in)

    heard_of(0)
    signed_in.evaluate(LOOK_AGAIN)
    expect(banner).not_to_contain_text("No worker lives")
