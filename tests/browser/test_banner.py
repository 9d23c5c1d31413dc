"""Work without workers is told on a page that is open, and not told any more when they are back."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from orchestrator.models import Worker
from tests.browser.conftest import fits

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

LOOK_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


def heard_of(seconds_ago: float) -> None:
    now = timezone.now()
    Worker.objects.update_or_create(
        id="one",
        defaults={
            "supervisor": "one",
            "host": "here",
            "pid": 1,
            "queue": "default",
            "started_at": now,
            "seen_at": now - timedelta(seconds=seconds_ago),
        },
    )


def test_a_worker_that_dies_is_missed_on_an_open_page(signed_in: Page) -> None:
    heard_of(0)
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
