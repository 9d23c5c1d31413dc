"""S10.4, saved views in a browser: what one person has saved another opens from its link, or nobody else."""

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.messages import Destination
from tests.browser.orders import placed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

WHERE = 'description contains "50 MWh"'


@pytest.fixture
def narrowed(signed_in: Page) -> Page:
    """A list of what has failed and is of 50 MWh, with the start as a column instead of the summary."""
    for destination, what, key in (
        (Destination.BOTH, "50 MWh", "A-1"),
        (Destination.BOTH, "60 MWh", "A-2"),
        (Destination.INTERNAL, "50 MWh", "A-3"),
    ):
        placed(destination, key, what)
    signed_in.goto("/processes/")
    signed_in.get_by_label("Status").select_option("failed")
    signed_in.locator("summary", has_text="Columns").click()
    signed_in.get_by_role("checkbox", name="Summary").uncheck()
    signed_in.get_by_role("checkbox", name="Started").check()
    signed_in.locator("summary", has_text="Conditions on the data").click()
    signed_in.get_by_label("All conditions").fill(WHERE)
    signed_in.get_by_role("button", name="Show", exact=True).click()
    shows_it(signed_in)
    return signed_in


def shows_it(page: Page) -> None:
    """The page shows that list."""
    expect(page.locator("#rows a.subject")).to_have_text(["A-1"])
    for chip in ("Status: Failed", f"Data: {WHERE}"):
        expect(page.locator(".chips > .chip", has_text=chip)).to_be_visible()
    expect(page.locator("#listing th", has_text="Started")).to_be_visible()
    expect(page.locator("#listing th", has_text="Summary")).to_have_count(0)


def saved(page: Page, name: str) -> str:
    """Save the list that the page shows for the team; the link of the view."""
    page.locator("summary", has_text="Saved views").click()
    page.locator("#save-view").get_by_label("Name").fill(name)
    page.get_by_label("for the team").check()
    page.get_by_role("button", name="Save this view").click()
    page.wait_for_url("**/views/")
    row = page.locator("#views tbody tr", has_text=name)
    expect(row.locator("[data-label=For]")).to_have_text("the team")
    return row.locator("a.subject").get_attribute("href") or ""


def offered(page: Page, name: str) -> Locator:
    """The link of a view on the list of processes."""
    page.goto("/processes/")
    page.locator("summary", has_text="Saved views").click()
    expect(page.locator("#save-view")).to_be_visible()
    return page.locator("a.chip[href^='/views/']", has_text=name)


def test_s10_4_what_is_saved_for_the_team_another_person_opens_from_its_link(
    narrowed: Page, other: Page
) -> None:
    link = saved(narrowed, "Failed, 50 MWh")

    other.goto(link)
    shows_it(other)

    chip = offered(other, "Failed, 50 MWh")
    expect(chip).to_have_text("team: Failed, 50 MWh")
    chip.click()
    shows_it(other)
