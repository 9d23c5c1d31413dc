"""S3 in a browser: the elements of a map, what a process manager accepts, and what a step's panel says."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from orchestrator import start_process
from orchestrator.models import ProcessInstance
from orchestrator.testing import run
from tests.apps.nested_maps.processes import Inventory, Shop, Stocktaking
from tests.browser.conftest import fits
from tests.browser.orders import placed
from tests.browser.pressing import opened
from tests.services.cases import cases
from tests.services.crews import knowing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


shelves = knowing(Stocktaking, Inventory)


@pytest.fixture
def inventory() -> ProcessInstance:
    names = [f"棚{number}" for number in range(35)]
    receipt = start_process(Inventory, Shop(names, broken="棚3/1"))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def test_s3_5_elements_are_found_at_the_map_and_lead_into_nested_maps(
    signed_in: Page, inventory: ProcessInstance
) -> None:
    opened(signed_in, inventory)
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
    opened(signed_in, f"{signed_in.url}?step=count_box")
    expect(signed_in.locator("#elements")).to_contain_text("3 elements in all")
    expect(signed_in.locator("#runs-rows")).to_contain_text("棚34/2")
    expect(signed_in.locator("#now")).to_contain_text("Signature")


def test_s3_3_one_panel_opens_by_a_click_and_by_the_keyboard(signed_in: Page) -> None:
    opened(signed_in, placed(Destination.EXTERNAL))
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


@cases("width", 1440, 1024, 390)
def test_s3_3_the_panel_is_seen_at_once_its_box_is_marked_and_escape_closes_it(
    width: int, signed_in: Page
) -> None:
    signed_in.set_viewport_size({"width": width, "height": 800})
    opened(signed_in, placed(Destination.EXTERNAL, f"A-{width}"))
    step = signed_in.locator(".step[data-node=AwaitingExternalCreation]")
    step.click()
    expect(signed_in.locator("#step-title")).to_be_in_viewport()
    expect(signed_in.locator(".step.is-chosen")).to_have_count(1)
    expect(step).to_have_class(re.compile("is-chosen"))
    fits(signed_in)
    signed_in.keyboard.press("Escape")
    expect(signed_in.locator("#step")).to_have_count(0)
    expect(signed_in.locator(".step.is-chosen")).to_have_count(0)


def test_an_error_is_said_once_and_redo_stands_behind_retry_with_what_it_does(
    signed_in: Page, inventory: ProcessInstance
) -> None:
    broken = ProcessInstance.objects.get(parent=inventory, status="failed")
    opened(signed_in, f"/processes/{broken.pk}/?step=count_box")
    said = signed_in.get_by_text("棚3/1 is broken open").filter(visible=True)
    expect(said).to_have_count(1)
    expect(signed_in.locator("#retry-button")).to_be_visible()
    redo = signed_in.locator("[data-opens=redo-dialog]").first
    opened(signed_in, broken)
    expect(redo).to_be_hidden()
    signed_in.locator("#runs-rows details.others summary").first.click()
    redo.click()
    expect(signed_in.locator("#redo-dialog .warning")).to_contain_text("Done again:")
    signed_in.keyboard.press("Escape")
    fits(signed_in)


def test_s10_3_a_press_on_a_heading_sorts_and_another_reverses(signed_in: Page) -> None:
    for number, what in enumerate(("20 MWh", "30 MWh", "10 MWh"), 1):
        placed(Destination.INTERNAL, f"A-{number}", what)
    opened(signed_in, "/processes/?status=completed")
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
