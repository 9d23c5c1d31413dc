"""A deadline that passes while its page is open."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.models import StepRun
from orchestrator.testing import run
from tests.browser.orders import WHAT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


def test_a_passing_deadline_turns_amber_and_says_since_when(signed_in: Page) -> None:
    order = place_order(Destination.EXTERNAL, WHAT)
    run()
    soon = timezone.now() + timedelta(seconds=20)
    open_visits = StepRun.objects.filter(instance=order.process_id, finished_at=None)
    open_visits.update(wake_at=soon)
    signed_in.clock.install()
    signed_in.goto(f"/processes/{order.process_id}/")
    deadline = signed_in.locator("#now .deadline")
    expect(deadline).to_contain_text("Deadline in")
    expect(deadline.get_by_text("Overdue since")).to_be_hidden()

    signed_in.clock.fast_forward(25_000)

    expect(deadline.get_by_text("Overdue since")).to_be_visible()
    expect(deadline.get_by_text("Deadline in")).to_be_hidden()
    amber = signed_in.evaluate(
        "getComputedStyle(document.querySelector('.chip.c-retry, .c-retry')).color"
    )
    expect(deadline.locator(".over")).to_have_css("color", amber)
