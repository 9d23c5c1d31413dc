"""S10 in a browser: one box that finds, lists narrowed by what data says, new rows, and files of what is listed."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator import send_event, start_process
from orchestrator.models import Incident, ProcessInstance
from orchestrator.testing import run
from tests.apps.outside_ids.processes import Delivery, Ordered
from tests.apps.searched.processes import Accepted, Address, Asked, OpenQuote, Quote
from tests.browser.pressing import opened
from tests.services.cases import words
from tests.services.crews import knowing
from tests.services.site import live_site
from tests.services.sizes import size

__all__ = ["live_site"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

CONDITIONS = "details.conditions:has([name=where])"

FIELDS = ("Field or path", "Comparison", "Value")
"""What one condition is added by."""


deliveries_and_quotes = knowing(Delivery, Quote, OpenQuote)


def asked(quote: str, of: Any = Quote, **given: Any) -> None:
    start_process(of, Asked(quote, **given))
    run()


def typed(page: Page, text: str) -> None:
    """Write into the box above the page, and press Enter; nothing else is pressed."""
    box = page.locator(".find input")
    box.click()
    page.keyboard.insert_text(text)
    page.keyboard.press("Enter")


def keys(page: Page) -> Locator:
    return page.locator("#rows a.subject")


# S10.1


@pytest.fixture
def things(transactional_db: None) -> dict[str, ProcessInstance]:
    """Two orders, one of which has failed, and two deliveries that others know by the numbers of their parcels."""
    for destination, key in ((Destination.INTERNAL, "A-1"), (Destination.BOTH, "A-2")):
        place_order(destination, "50 MWh", key)
    for order, parcel in (("D-1", "P-1"), ("D-2", "P-2")):
        start_process(Delivery, Ordered(order, [parcel], 7))
    run()
    return {row.correlation_key: row for row in ProcessInstance.objects.all()}


def test_s10_1_the_box_opens_a_process_by_its_id_its_key_and_an_outside_id(
    signed_in: Page, things: dict[str, ProcessInstance]
) -> None:
    signed_in.goto("/")
    for text, key in ((str(things["A-1"].pk), "A-1"), ("A-2", "A-2"), ("P-1", "D-1")):
        typed(signed_in, text)

        signed_in.wait_for_url(f"**/processes/{things[key].pk}/")
        expect(signed_in.locator("#header h1")).to_have_text(str(things[key]))


@pytest.mark.full_size("all pages", seconds=60)
def test_s10_1_the_box_is_on_every_page(
    signed_in: Page, things: dict[str, ProcessInstance]
) -> None:
    order, there = things["A-2"], things["D-2"]
    failure = Incident.objects.get(instance=order)
    pages = words(
        f"""/ /definitions/order-listing/ /definitions/order-listing/versions/
        /processes/ /processes/{order.pk}/ /processes/{order.pk}/repair/ /processes/{order.pk}/messages/
        /waits/ /stalled/ /decisions/ /events/ /events/send/ /failures/ /failures/{failure.fingerprint}/
        /operations/ /operations/begin/?status=failed&action=retry /audit/ /views/ /tokens/
        /find/?q=nothing+at+all"""
    )
    for address in pages[:: size(3, full=1)]:
        signed_in.goto(address)
        box = signed_in.locator(".find input")
        expect(box).to_be_in_viewport()
        box.fill("P-2")
        box.press("Enter")
        signed_in.wait_for_url(f"**/processes/{there.pk}/")


# S10.2


@pytest.fixture
def quotes(signed_in: Page) -> Page:
    """The list of three quotes, with the conditions on their data opened."""
    asked("Q-1", amount=5, vip=True)
    asked("Q-2", amount=120, address=Address("Berlin", "DE"))
    asked("Q-3", amount=7)
    signed_in.goto("/processes/?definition=quote")
    signed_in.locator(f"{CONDITIONS} > summary").click()
    return signed_in


def add(page: Page, field: str, operator: str, value: str, join: str = "") -> None:
    if join:
        page.get_by_label("One more is joined by").select_option(join)
    named, compared, with_what = map(page.get_by_label, FIELDS)
    named.fill(field)
    compared.select_option(operator)
    with_what.fill(value)
    page.get_by_role("button", name="Add the condition").click()


def chip(page: Page) -> Locator:
    """What the list is narrowed to by its data."""
    return page.locator(".chips .chip.filter", has_text="Data:")


def test_s10_2_the_form_adds_conditions_and_joins_by_or_and_and(quotes: Page) -> None:
    add(quotes, "amount", ">", "100")
    expect(chip(quotes).locator("b")).to_have_text("amount > 100")
    expect(keys(quotes)).to_have_text(["Q-2"])

    add(quotes, "vip", "=", "true", "or")
    expect(chip(quotes).locator("b")).to_have_text("amount > 100 or vip = true")
    expect(keys(quotes)).to_have_text(["Q-2", "Q-1"])

    # One more narrows what is there, whatever it was joined by.
    add(quotes, "address.country", "=", "JP")
    every = "(amount > 100 or vip = true) and address.country = JP"
    expect(chip(quotes).locator("b")).to_have_text(every)
    expect(keys(quotes)).to_have_text(["Q-1"])
    expect(quotes.get_by_label("All conditions")).to_have_value(every)

    chip(quotes).click()
    expect(chip(quotes)).to_have_count(0)
    expect(keys(quotes)).to_have_text(["Q-3", "Q-2", "Q-1"])
    left = quotes.locator(".chips .chip.filter", has_text="Definition:")
    expect(left).to_be_visible()


def stands_at(said: Locator, field: Locator) -> None:
    """A mistake is seen at its field, and told with it."""
    expect(said).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_attribute("aria-describedby", said.get_attribute("id") or "")
    over, under = field.bounding_box(), said.bounding_box()
    assert over
    assert under
    assert 0 <= under["y"] - (over["y"] + over["height"]) < 40


def test_s10_2_a_mistake_stands_at_its_field_and_the_text_is_kept(quotes: Page) -> None:
    text = quotes.get_by_label("All conditions")
    for wrong, said in (
        ("amount >", "Say what it is compared with"),
        ("amount > many", "amount is a number: write one"),
    ):
        text.fill(wrong)
        text.press("Enter")
        mistake = quotes.locator("#where-mistake")
        expect(mistake).to_contain_text(said)
        stands_at(mistake, text)
        expect(text).to_have_value(wrong)
        expect(keys(quotes)).to_have_count(0)

    text.fill("")
    for filled, label, said in (
        (("", ">", "100"), "Field or path", "Name a field"),
        (("amount", "", "100"), "Comparison", "Choose a comparison"),
        (("amount", ">", ""), "Value", "Say what it is compared with"),
    ):
        add(quotes, *filled)
        mistake = quotes.locator(".mistake[id^=add-]")
        expect(mistake).to_contain_text(said)
        stands_at(mistake, quotes.get_by_label(label))
        for kept, one in zip(filled, FIELDS, strict=True):
            expect(quotes.get_by_label(one)).to_have_value(kept)
        expect(quotes.locator(f"{CONDITIONS} [aria-invalid]")).to_have_count(1)

    quotes.get_by_label("Value").fill("100")
    quotes.get_by_role("button", name="Add the condition").click()
    expect(keys(quotes)).to_have_text(["Q-2"])


# S10.4


def test_s10_4_new_rows_are_said_and_none_moves_under_the_hand(signed_in: Page) -> None:
    for number in range(3):
        asked(f"Q-{number}", OpenQuote)
    opened(signed_in, "/processes/?status=live")
    there = ["Q-2", "Q-1", "Q-0"]
    expect(keys(signed_in)).to_have_text(there)
    under = signed_in.locator("#rows tr", has_text="Q-1")
    under.hover()
    before = under.bounding_box()

    for number in range(12):
        start_process(OpenQuote, Asked(f"N-{number}"))
    run()
    said = signed_in.locator("#new")
    expect(said).to_have_text("12 new – show")  # noqa: RUF001  so it stands there

    # One that is no longer live stays in its place too, and says so.
    first = ProcessInstance.objects.get(correlation_key="Q-2")
    send_event(Accepted("Q-2"), id="accepted", source="shop", process_id=first.pk)
    run()
    expect(signed_in.locator("#rows tr", has_text="Q-2")).to_have_class("gone")
    expect(keys(signed_in)).to_have_text(there)
    assert under.bounding_box() == before
    assert under.evaluate("row => row.matches(':hover')")

    said.locator("a").click()
    expect(keys(signed_in)).to_have_count(14)
    expect(keys(signed_in).first).to_have_text("N-11")
    expect(said).to_be_empty()


# S10.5
