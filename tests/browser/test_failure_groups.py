"""S5, the failure inbox, in a browser: a group opens, grows, is mended and leaves, and stays one when lines move."""

import re

import pytest
from playwright.sync_api import Page, expect

from orchestrator.models import BulkOperation, Incident
from tests.browser.conftest import live
from tests.browser.orders import exchange_back, failed
from tests.browser.pressing import asked, submit
from tests.services.bulk import worked_on

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def group(signed_in: Page) -> Page:
    """The page of the only group, opened from the first page."""
    failed(3)
    signed_in.goto("/")
    signed_in.click("#nav a[href='/failures/']")
    signed_in.click("#failures a.subject")
    live(signed_in)
    return signed_in


def test_s5_1_a_group_opens_and_grows_while_it_is_looked_at(group: Page) -> None:
    chip = group.locator("#failure-group .chip.c-failed").first
    expect(chip).to_have_text("3 failed")
    expect(group.locator("#members tbody tr")).to_have_count(3)

    failed(1)

    expect(chip).to_have_text("4 failed")
    expect(group.locator("#members tbody tr")).to_have_count(4)


def test_s5_3_a_group_is_marked_as_handled_and_comes_back(group: Page) -> None:
    dialog = asked(group, "mark_handled", "the exchange is down until noon")
    group.fill("#mark_handled-days", "2")
    submit(dialog).click()
    header = group.locator("#failure-group .header")
    expect(header).to_contain_text("the exchange is down until noon")
    expect(group.locator("#unmark_handled-button")).to_be_visible()

    group.goto("/failures/")
    expect(group.locator("#failures tbody tr")).to_have_count(0)
    group.click("#failures a[href*='show=handled']")
    expect(group.locator("#failures tbody tr")).to_have_count(1)
    group.goto("/failures/")
    live(group)
    failed(1)

    expect(group.locator("#failures tbody tr")).to_have_count(1)
    expect(group.locator("#failures tbody tr")).to_contain_text("is back")


def test_s5_4_a_group_that_was_solved_leaves_and_is_found_with_what_resolved_it(
    group: Page,
) -> None:
    cause = Incident.objects.open().latest("pk").fingerprint
    inbox = group.context.new_page()
    inbox.goto("/failures/")
    live(inbox)
    expect(inbox.locator("#failures tbody tr")).to_have_count(1)
    group.click("#failure-group a[href^='/operations/begin/']")
    group.fill("#begin textarea", "the exchange is back")
    group.click("#begin-button")
    group.wait_for_url(re.compile(r"/operations/[0-9a-f-]{36}/"))
    operation = BulkOperation.objects.get()

    with exchange_back():
        worked_on(operation)

    assert operation.done == 3
    expect(inbox.locator("#failures .empty")).to_contain_text("Nothing has failed")
    inbox.click("#failures a[href*='show=resolved']")
    row = inbox.locator(f"#group-{cause}")
    expect(row.locator("td").nth(2)).to_have_text("3")
    row.locator(f"a[href='/operations/{operation.pk}/']").click()
    expect(inbox.locator("#settled")).to_have_text("3 of 3 have their verdict")
    inbox.goto(f"/failures/{cause}/")
    expect(inbox.locator("#failure-group .empty")).to_contain_text("Resolved by")
