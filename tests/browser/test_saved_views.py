"""S10.4, saved views in a browser: what one person has saved another opens from its link, or nobody else."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.engine.drain import drain
from orchestrator.models import SavedView
from tests.browser.conftest import IN_PROCESS_TOO, opened_by
from tests.services.site import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

WHERE = 'description contains "50 MWh"'


@pytest.fixture
def other(
    signed_in: Page, browser: Browser, live_site: Site, viewer: User
) -> Iterator[Page]:
    """The page of somebody else, who may only look."""
    with opened_by(browser, live_site, viewer) as page:
        yield page


@pytest.fixture
def narrowed(signed_in: Page) -> Page:
    """A list of what has failed and is of 50 MWh, with the start as a column instead of the summary."""
    for destination, what, key in (
        (Destination.BOTH, "50 MWh", "A-1"),
        (Destination.BOTH, "60 MWh", "A-2"),
        (Destination.INTERNAL, "50 MWh", "A-3"),
    ):
        place_order(destination, what, key)
    drain()
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


def saved(page: Page, name: str, *, team: bool) -> str:
    """Save the list that the page shows under a name; the link of the view."""
    page.locator("summary", has_text="Saved views").click()
    page.locator("#save-view").get_by_label("Name").fill(name)
    page.get_by_label("for the team").set_checked(team)
    page.get_by_role("button", name="Save this view").click()
    page.wait_for_url("**/views/")
    row = page.locator("#views tbody tr", has_text=name)
    expect(row.locator("[data-label=For]")).to_have_text("the team" if team else "me")
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
    link = saved(narrowed, "Failed, 50 MWh", team=True)

    other.goto(link)
    shows_it(other)

    chip = offered(other, "Failed, 50 MWh")
    expect(chip).to_have_text("team: Failed, 50 MWh")
    chip.click()
    shows_it(other)


@IN_PROCESS_TOO
def test_s10_4_what_is_saved_for_oneself_is_opened_by_its_owner_alone(
    narrowed: Page, other: Page
) -> None:
    link = saved(narrowed, "Mine", team=False)

    refused = other.goto(link)
    assert refused is not None
    assert refused.status == 404
    expect(other.locator("#rows")).to_have_count(0)
    expect(offered(other, "Mine")).to_have_count(0)
    other.goto("/views/")
    expect(other.locator("#views")).to_contain_text("No view is saved.")

    offered(narrowed, "Mine").click()
    shows_it(narrowed)


@IN_PROCESS_TOO
def test_s10_4_who_may_not_share_saves_for_oneself_and_sees_why(
    narrowed: Page, other: Page
) -> None:
    other.goto(narrowed.url)
    other.locator("summary", has_text="Saved views").click()
    team = other.get_by_label("for the team")
    expect(team).to_be_disabled()
    expect(team).to_have_attribute("aria-describedby", "share-why")
    expect(other.locator("#share-why")).to_be_visible()
    expect(other.locator("#share-why")).to_have_text("Your account may not do this.")

    other.locator("#save-view").get_by_label("Name").fill("Mine")
    other.get_by_role("button", name="Save this view").click()

    expect(other.locator("#views tbody tr")).to_contain_text("Mine")
    assert SavedView.objects.get().owner == User.objects.get(username="viewer")
