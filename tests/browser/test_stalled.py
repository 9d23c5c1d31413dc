"""S8.4 in a browser: what stands still is listed with why, and a nudge lets it go on, however often it is pressed."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import Count, QuerySet
from django.utils import timezone
from playwright.sync_api import Locator, Page, Route, expect

from examples.order_listing.models import Order
from orchestrator import start_process
from orchestrator.engine.drain import drain
from orchestrator.models import (
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.browser.conftest import IN_PROCESS_TOO, live
from tests.browser.orders import waiting_order
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


def asked(page: Page) -> None:
    """Open the dialog of the only button, and say why."""
    page.locator("#stalled tbody tr button", has_text="Nudge").click()
    page.fill("#nudge-dialog textarea", "it has not moved for minutes")


def answer(page: Page) -> Locator:
    return page.locator("#nudge-dialog .result")


def press(page: Page) -> None:
    """Press, once the press before has had its answer: until then the form takes no other."""
    expect(page.locator("#nudge-dialog form[data-busy]")).to_have_count(0)
    page.click("#nudge-dialog button[type=submit]")


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

    asked(signed_in)
    expect(signed_in.locator("#nudge-dialog")).to_contain_text(
        "Nothing that was done is done again."
    )
    assert not OperatorAction.objects.exists()
    press(signed_in)

    expect(signed_in.locator("#flash")).to_contain_text("Nudged")
    expect(signed_in.locator("#stalled .empty")).to_contain_text("Nothing stands still")
    assert signed_in.evaluate("window.loadedOnce") is True
    signed_in.goto(f"/processes/{still.pk}/")
    live(signed_in)
    expect(signed_in.locator("#n_verdict.is-waiting.is-current")).to_be_visible()
    ledger = signed_in.locator("#ledger tbody tr", has_text="Nudge by operator")
    expect(ledger).to_contain_text("it has not moved for minutes")


def losing_the_answer(route: Route) -> None:
    route.fetch()
    route.abort()


@IN_PROCESS_TOO
def test_s8_4_nudged_twice_nothing_is_done_twice(
    still: ProcessInstance, signed_in: Page, another_page: Callable[[str], Page]
) -> None:
    signed_in.goto("/stalled/")
    live(signed_in)
    other = another_page("/stalled/")
    for page in (signed_in, other):
        asked(page)
    signed_in.route("**/nudge/", losing_the_answer)
    press(signed_in)
    expect(answer(signed_in)).to_contain_text("The server did not answer. Press again")
    signed_in.unroute("**/nudge/")

    press(signed_in)
    expect(signed_in.locator("#nudge-dialog")).to_be_hidden()
    assert OperatorAction.objects.filter(action="nudge").count() == 1
    press(other)
    expect(answer(other)).to_contain_text("operator did Nudge")
    press(other)  # a new decision, of one who has read that
    expect(other.locator("#flash")).to_contain_text("Nudged")

    drain()
    once = still.step_runs.filter(node__in=["classify", "merge", "verdict"])
    times = once.order_by().values_list("node").annotate(Count("pk"))
    assert dict(times) == {"classify": 1, "merge": 1, "verdict": 1}
    results = OperatorAction.objects.order_by("pk").values_list("result", flat=True)
    assert list(results) == ["done", "refused", "done"]
    other.goto(f"/processes/{still.pk}/")
    expect(other.locator("#n_verdict.is-waiting.is-current")).to_be_visible()


@IN_PROCESS_TOO
def test_s8_4_what_only_says_that_it_tries_again_says_after_a_nudge_how_it_stands(
    signed_in: Page,
) -> None:
    order = waiting_order()
    [wake_at] = order_visits(order).values_list("wake_at", flat=True)
    order_visits(order).update(wake_at=None)
    long_ago = timezone.now() - timedelta(minutes=5)
    ProcessInstance.objects.update(status="retrying", changed_at=long_ago)
    signed_in.goto("/stalled/")
    live(signed_in)
    row = signed_in.locator("#stalled tbody tr")
    expect(row.locator(".chip")).to_have_text("Retrying")
    expect(row).to_contain_text("It says that it tries again, but nothing waits")

    asked(signed_in)
    press(signed_in)

    expect(signed_in.locator("#stalled .empty")).to_be_visible()
    signed_in.goto(f"/processes/{order.process_id}/")
    expect(signed_in.locator("#header .chip")).to_have_text("Waiting")
    order_visits(order).update(wake_at=wake_at)  # its deadline was taken only for this


def order_visits(order: Order) -> QuerySet[StepRun]:
    return StepRun.objects.filter(instance=order.process_id, finished_at=None)
