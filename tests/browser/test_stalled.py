"""S8.4 in a browser: what stands still is listed with why, and a nudge lets it go on, however often it is pressed."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from orchestrator import start_process
from orchestrator.models import InboxEvent, OperatorAction, ProcessInstance, StepRun
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.browser.conftest import live
from tests.browser.pressing import asked, opened, stayed, submit
from tests.services.site import live_site
from tests.services.workers import Workers

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
]


@pytest.fixture
def still(transactional_db: None, helpdesk: None) -> ProcessInstance:
    """A process that says it goes on, and whose first step has no time at which a worker would take it."""
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    InboxEvent.objects.update(wake_at=None)
    long_ago = timezone.now() - timedelta(minutes=5)
    ProcessInstance.objects.update(status="running", changed_at=long_ago)
    return ProcessInstance.objects.get(pk=receipt.process_id)


def test_s8_4_it_is_listed_with_why_and_after_a_nudge_the_workers_go_on_with_it(
    still: ProcessInstance, workers: Workers, signed_in: Page
) -> None:
    signed_in.goto("/")
    signed_in.click("#needs a[data-kind=stalled]")
    live(signed_in)
    row = signed_in.locator("#stalled tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("T-1")
    expect(row).to_contain_text("Classify is “Ready”, but has no time at which")
    expect(row).to_contain_text("A nudge lets it be looked at again.")
    signed_in.evaluate("window.loadedOnce = true")

    button = "#stalled tbody tr [data-opens=nudge-dialog]"
    dialog = asked(signed_in, "nudge", "it has not moved for minutes", button)
    expect(dialog).to_contain_text("Nothing that was done is done again.")
    assert not OperatorAction.objects.exists()
    submit(dialog).click()

    expect(signed_in.locator("#flash")).to_contain_text("Nudged")
    expect(signed_in.locator("#stalled .empty")).to_contain_text("Nothing stands still")
    stayed(signed_in)
    opened(signed_in, still)
    expect(signed_in.locator("#n_verdict.is-waiting.is-current")).to_be_visible()
    ledger = signed_in.locator("#history tbody tr", has_text="Nudge by operator")
    expect(ledger).to_contain_text("it has not moved for minutes")


def test_s8_4_due_work_without_a_worker_is_counted_while_the_page_is_open(
    transactional_db: None, helpdesk: None, signed_in: Page
) -> None:
    start_process(Inquiry, Inquiry.Input("T-1"))
    signed_in.goto("/stalled/")
    live(signed_in)
    due = signed_in.locator("#unserved tbody tr")
    expect(due).to_have_count(1)
    expect(due).to_contain_text("manage.py work")
    expect(due.locator("td.num")).to_have_text("1")
    start_process(Inquiry, Inquiry.Input("T-2"))
    expect(due.locator("td.num")).to_have_text("2")
    expect(signed_in.locator("#unserved")).to_have_count(1)
    expect(signed_in.locator("#stalled .empty")).to_contain_text("Nothing else")
