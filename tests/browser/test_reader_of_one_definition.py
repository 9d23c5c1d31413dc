"""S12.1 in a browser: who sees one definition works with it as others do, and is sent nothing of any other."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from orchestrator.models import BulkOperation, ProcessInstance
from tests.apps.process_managers.desk import place as parcel_placed
from tests.apps.process_managers.fixtures import parcels
from tests.browser.conftest import fits, live
from tests.browser.orders import placed, went_on
from tests.browser.pressing import opened, stayed
from tests.browser.received import Received
from tests.browser.test_pages import complaints
from tests.conftest import person
from tests.console.test_seen_by_definition import ORDERS, PARCELS, VIEW, let_see
from tests.services.bulk import worked_on
from tests.services.forms_of_actions import failed_order
from tests.services.site import Site, live_site

__all__ = ["live_site", "parcels"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("parcels"),
]

MAY = (VIEW, "retry_processinstance", "run_bulkoperation")
FOREIGN = "FOREIGN-PARCEL"


@pytest.fixture
def ann(transactional_db: None) -> User:
    """Return somebody who sees the orders alone, and may try them again."""
    return let_see(person("ann"), ORDERS, *MAY)


@pytest.fixture
def foreign(transactional_db: None) -> ProcessInstance:
    """Return a process of another definition."""
    return parcel_placed(FOREIGN)


def test_s12_1_they_go_from_the_list_to_a_process_and_see_it_move(
    page: Page, live_site: Site, ann: User, foreign: ProcessInstance
) -> None:
    received = Received(page)
    order = placed(Destination.EXTERNAL, "A-1")
    opened(page, live_site.link(ann))
    page.get_by_role("navigation").get_by_role("link", name="Processes").click()
    live(page)
    expect(page).to_have_url(f"{live_site.url}/processes/?definition={ORDERS}")
    expect(page.locator("main tbody tr")).to_have_count(1)
    page.locator("main tbody tr a").first.click()
    live(page)
    expect(page.locator("#header")).to_contain_text("A-1")
    page.evaluate("window.loadedOnce = true")
    before = page.locator(".step.is-current").first.get_attribute("data-node")

    went_on(order)

    moved = page.locator(f".step.is-current:not([data-node={before}])").first
    expect(moved).to_be_visible()
    stayed(page)
    assert received.texts
    assert received.with_any(PARCELS, FOREIGN, str(foreign.pk)) == []


def test_s12_1_what_waits_and_what_has_failed_is_there_for_them(
    page: Page, live_site: Site, ann: User, foreign: ProcessInstance
) -> None:
    received = Received(page)
    order = failed_order()
    opened(page, live_site.link(ann))
    for name in ("Waits", "Decisions", "Failures"):
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        live(page)
        expect(page.locator("h1")).to_have_text(name)
        expect(page.locator("nav [aria-current]")).to_have_text(name)
        assert complaints(page) == []
        fits(page)
    page.locator("main tbody tr a").first.click()
    live(page)
    expect(page.locator("#members")).to_contain_text(order.correlation_key)
    assert received.with_any(PARCELS, FOREIGN, str(foreign.pk)) == []


def test_s12_1_they_begin_an_operation_on_many_and_follow_it_live(
    page: Page, live_site: Site, ann: User, foreign: ProcessInstance
) -> None:
    received = Received(page)
    failed_order()
    page.goto(live_site.link(ann))
    page.goto(f"/failures/?definition={ORDERS}")
    page.locator("main tbody tr a").first.click()
    page.click("#begin-retry")
    page.fill("#begin [name=reason]", "the line is back")
    page.click("#begin button[type=submit]")
    live(page)
    expect(page.locator("#settled")).to_have_text("0 of 0 have their verdict")
    page.evaluate("window.loadedOnce = true")

    worked_on(BulkOperation.objects.get())

    expect(page.locator("#settled")).to_have_text("1 of 1 have their verdict")
    stayed(page)
    assert received.with_any(PARCELS, FOREIGN, str(foreign.pk)) == []
    page.close()
