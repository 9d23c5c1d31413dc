"""S3 in a browser: the elements of a map, what a process manager accepts, and what a step's panel says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator import start_process
from orchestrator.engine.drain import drain
from orchestrator.models import ProcessInstance
from orchestrator.testing import registered
from tests.apps.nested_maps.processes import Inventory, Shop, Stocktaking
from tests.browser.conftest import IN_PROCESS_TOO, fits, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture(scope="module", autouse=True)
def shelves() -> Iterator[None]:
    with registered(Stocktaking, Inventory):
        yield


@pytest.fixture
def inventory() -> ProcessInstance:
    names = [f"棚{number}" for number in range(35)]
    receipt = start_process(Inventory, Shop(names, broken="棚3/1"))
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def test_s3_5_elements_are_found_at_the_map_and_lead_into_nested_maps(
    signed_in: Page, inventory: ProcessInstance
) -> None:
    signed_in.goto(f"/processes/{inventory.pk}/")
    live(signed_in)
    signed_in.locator(".step[data-node=stocktaking]").click()
    expect(signed_in.locator("#elements")).to_contain_text("35 elements in all")
    rows = signed_in.locator("#runs-rows tbody tr")
    expect(rows).to_have_count(31)
    signed_in.click("#runs-rows .pages a")
    expect(rows).to_have_count(5)

    signed_in.fill("#runs input[name=search]", "棚34")
    signed_in.press("#runs input[name=search]", "Enter")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("棚34")
    fits(signed_in)
    with signed_in.expect_navigation():
        rows.locator("a.subject").click()
    signed_in.goto(f"{signed_in.url}?step=count_box")
    live(signed_in)
    expect(signed_in.locator("#elements")).to_contain_text("3 elements in all")
    expect(signed_in.locator("#runs-rows")).to_contain_text("棚34/2")
    expect(signed_in.locator("#now")).to_contain_text("Signature")


@IN_PROCESS_TOO
def test_s3_2_from_what_is_accepted_one_goes_to_its_form(signed_in: Page) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    drain()
    signed_in.goto(f"/processes/{order.process_id}/")
    live(signed_in)
    now = signed_in.locator("#now")
    expect(now).to_contain_text("What happens by itself")
    expect(now).to_contain_text("ListOnExternal")
    fits(signed_in)
    accepted = now.locator(".accepted li", has_text="ExternalOrderCreated").first
    accepted.get_by_role("link", name="Send event").click()
    expect(signed_in.locator("[name=process]")).to_have_value(str(order.process_id))
    expect(signed_in.locator("select[name=type]")).to_have_value("ExternalOrderCreated")


def test_s3_3_one_panel_opens_by_a_click_and_by_the_keyboard(signed_in: Page) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    drain()
    signed_in.goto(f"/processes/{order.process_id}/")
    live(signed_in)
    expect(signed_in.locator("#step")).to_have_count(0)

    signed_in.locator(".step[data-node=AwaitingExternalCreation]").click()
    panel = signed_in.locator("#step")
    expect(panel).to_have_count(1)
    expect(panel).to_contain_text("Usual")
    expect(panel).to_contain_text("visit 1")
    signed_in.locator("a:has(> .step[data-node=NotStarted])").focus()
    signed_in.keyboard.press("Enter")
    expect(signed_in.locator("#step-title")).to_contain_text("Not started")
    expect(signed_in.locator("#step")).to_have_count(1)
    fits(signed_in)
    signed_in.click("#step header a")
    expect(signed_in.locator("#step")).to_have_count(0)


def test_an_error_is_said_once_and_redo_stands_behind_retry_with_what_it_does(
    signed_in: Page, inventory: ProcessInstance
) -> None:
    broken = ProcessInstance.objects.get(parent=inventory, status="failed")
    signed_in.goto(f"/processes/{broken.pk}/?step=count_box")
    live(signed_in)
    said = signed_in.get_by_text("棚3/1 is broken open").filter(visible=True)
    expect(said).to_have_count(1)
    expect(signed_in.locator("#retry-button")).to_be_visible()
    redo = signed_in.locator("[data-opens=redo-dialog]").first
    signed_in.goto(f"/processes/{broken.pk}/")
    live(signed_in)
    expect(redo).to_be_hidden()
    signed_in.locator("#runs-rows details.others summary").first.click()
    expect(redo).to_be_visible()
    redo.click()
    expect(signed_in.locator("#redo-dialog .warning")).to_contain_text("Done again:")
    signed_in.keyboard.press("Escape")
    fits(signed_in)


@IN_PROCESS_TOO
def test_s10_3_a_list_is_turned_round_by_its_head_and_stays_so(signed_in: Page) -> None:
    for number in (1, 2, 3):
        place_order(Destination.INTERNAL, "50 MWh", f"A-{number}")
    drain()
    signed_in.goto("/processes/?columns=started")
    live(signed_in)
    rows = signed_in.locator("#rows a.subject")
    expect(rows).to_have_text(["A-3", "A-2", "A-1"])
    signed_in.click("th[aria-sort] a")
    expect(rows).to_have_text(["A-1", "A-2", "A-3"])
    live(signed_in)
    signed_in.select_option("select[name=status]", "completed")
    signed_in.click("form.filters button[type=submit] >> nth=0")
    expect(rows).to_have_text(["A-1", "A-2", "A-3"])
    assert "sort=oldest" in signed_in.url
    fits(signed_in)
    signed_in.go_back()
    expect(rows).to_have_text(["A-1", "A-2", "A-3"])


def test_s10_3_a_press_on_a_heading_sorts_by_it_and_another_turns_it_round(
    signed_in: Page,
) -> None:
    for number, what in enumerate(("20 MWh", "30 MWh", "10 MWh"), 1):
        place_order(Destination.INTERNAL, what, f"A-{number}")
    drain()
    signed_in.goto("/processes/?status=completed")
    live(signed_in)
    rows = signed_in.locator("#rows a.subject")
    heading = signed_in.locator("th", has_text="Summary")
    expect(rows).to_have_text(["A-3", "A-2", "A-1"])

    heading.locator("a").focus()
    signed_in.keyboard.press("Enter")

    expect(rows).to_have_text(["A-3", "A-1", "A-2"])
    expect(heading).to_have_attribute("aria-sort", "ascending")
    heading.locator("a").click()
    expect(rows).to_have_text(["A-2", "A-1", "A-3"])
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert "status=completed" in signed_in.url

    # Where there are no headings, on a phone, the form has all orders.
    fits(signed_in)
    signed_in.click("details.conditions summary >> text=Columns and order")
    signed_in.select_option("select[name=sort]", "summary")
    signed_in.click("form.filters button[type=submit] >> nth=0")
    expect(rows).to_have_text(["A-3", "A-1", "A-2"])
