"""S11, versions in a browser: what runs on them, two side by side, a migration, and the past on its own picture."""

import re

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.models import BulkOperation, OperatorAction, ProcessInstance
from orchestrator.testing import run
from tests.apps.versions.desk import filed, only
from tests.apps.versions.fixtures import versions
from tests.browser.conftest import live
from tests.services.bulk import worked_on

__all__ = ["versions"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("versions"),
]

VERSIONS = "/definitions/order-listing/versions/"
COMPARE = f"{VERSIONS}compare/?from=1&to=2"


def old_orders(number: int) -> list[ProcessInstance]:
    """Orders that stand in a step of the first version."""
    with only("order-listing", 1):
        placed = [place_order(Destination.BOTH, f"{one} MWh") for one in range(number)]
        run()
    keys = [order.process_id for order in placed]
    return list(ProcessInstance.objects.filter(pk__in=keys).order_by("pk"))


def test_s11_1_versions_are_reached_from_the_map_and_say_what_runs_on_them(
    signed_in: Page,
) -> None:
    old_orders(2)
    filed("C-1")  # of a definition that the site's code does not have at all

    signed_in.goto("/definitions/order-listing/")
    signed_in.click(".head a[href$='/versions/']")

    expect(signed_in.locator("#version-1 td:nth-child(2)")).to_have_text("2")
    expect(signed_in.locator("#left-behind .notice")).to_have_count(0)
    live(signed_in)
    old_orders(1)
    expect(signed_in.locator("#version-1 td:nth-child(2)")).to_have_text("3")

    signed_in.goto("/definitions/claim/versions/")
    expect(signed_in.locator("#left-behind [role=alert]")).to_contain_text(
        "The running code has no version 1 any more: 1 that go on with it stand still."
    )


def test_s11_3_a_preview_leads_to_an_operation_on_just_those(signed_in: Page) -> None:
    some = old_orders(3)
    signed_in.goto(f"{COMPARE}&q={some[1].correlation_key}")

    signed_in.click("#preview-button")
    expect(signed_in.locator("#total").first).to_have_text("1")
    expect(signed_in.locator("#would-move tbody tr")).to_have_count(1)
    assert not OperatorAction.objects.exists()
    signed_in.fill("#begin textarea", "the second version")
    signed_in.click("#begin-button")
    signed_in.wait_for_url(re.compile(r"/operations/[0-9a-f-]{36}/"))
    worked_on(BulkOperation.objects.get())

    live(signed_in)
    expect(signed_in.locator("#items tr[data-verdict=done]")).to_have_count(1)
    rows = ProcessInstance.objects.filter(pk__in=[one.pk for one in some])
    numbers = rows.order_by("pk").values_list("definition__version", flat=True)
    assert list(numbers) == [1, 2, 1]


def test_s11_3_by_keyboard_alone(signed_in: Page) -> None:
    filed("C-1")
    old_orders(1)
    signed_in.goto(COMPARE)

    box = signed_in.locator("#mapping select").first
    box.focus()
    signed_in.keyboard.press("ArrowDown")
    signed_in.locator("#preview-button").focus()
    signed_in.keyboard.press("Enter")

    expect(signed_in.locator("#would-move")).to_be_visible()
