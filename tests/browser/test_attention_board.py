"""S1, the first page, in a browser: what is wrong and what mends it, numbers that open what they count, one thumb."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Locator, Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.models import InboxEvent, OperatorAction
from orchestrator.testing import run
from tests.browser.conftest import opened_by
from tests.browser.orders import failed
from tests.browser.pressing import opened, stayed
from tests.browser.samples import orders
from tests.services.hired import hire_for_long
from tests.services.site import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

WEIGHT = 60_000
"""Bytes of HTML that the first page may have."""

THUMB = 44
"""Pixels of height that a thumb hits."""

ROWS = """() => {
    const groups = [...document.querySelectorAll("tbody tr[data-number]")].map(row => Number(row.dataset.number));
    const rows = document.querySelectorAll("tbody:not(.board *, #volume *) tr");
    return groups.length ? groups.reduce((a, b) => a + b) : rows.length;
}"""
"""How many things a list has: each row is one, or a group of so many."""


@pytest.fixture
def phone(
    transactional_db: None, browser: Browser, live_site: Site, operator: User
) -> Iterator[Page]:
    """A signed-in page on a phone that is 380 pixels wide."""
    more = {"viewport": {"width": 380, "height": 844}, "is_mobile": True}
    with opened_by(browser, live_site, operator, has_touch=True, **more) as page:
        yield page


@pytest.fixture(autouse=True)
def staffed(transactional_db: None) -> None:
    """Have a worker that lives for as long as a test can take, however busy the machine is."""
    hire_for_long()


def figure(page: Page, kind: str) -> Locator:
    return page.locator(f"#needs a[data-kind={kind}] b")


def test_s1_1_the_page_says_what_is_wrong_and_numbers_open_lists(
    signed_in: Page,
) -> None:
    orders()
    signed_in.goto("/")
    said = signed_in.locator("#headline p")
    expect(said).to_have_text(
        re.compile(
            r"2 failures of order-listing at “Awaiting external creation” since [\d:]+ \(\w+\)"
        )
    )
    assert said.locator("*").count() == 0  # text, whatever the application says

    links = {
        (link.get_attribute("href") or "", (link.text_content() or "").split()[0])
        for link in signed_in.locator("#needs a, #definitions .soft a").all()
    }
    some = {address: number for address, number in links if number != "0"}
    assert len(some) >= 3
    for address, number in some.items():
        signed_in.goto(address)
        assert signed_in.evaluate(ROWS) == int(number), address


def test_s1_2_a_count_changes_without_reload_and_agrees_with_the_list_it_opens(
    signed_in: Page,
) -> None:
    failed(1)
    opened(signed_in, "/")
    expect(figure(signed_in, "failures")).to_have_text("1")

    failed(2)

    expect(figure(signed_in, "failures")).to_have_text("3")
    expect(signed_in.locator("#headline p")).to_contain_text("3 failures")
    expect(signed_in.locator("#definitions .soft")).to_contain_text("3 failures")
    stayed(signed_in)
    figure(signed_in, "failures").click()
    expect(signed_in.locator("[data-number]")).to_have_attribute("data-number", "3")


def test_s1_3_a_queue_with_work_and_without_a_worker_is_red_and_said_first(
    signed_in: Page,
) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    at = timezone.now() - timedelta(minutes=9)
    InboxEvent.objects.filter(wake_at__isnull=False).update(queue="mail", wake_at=at)

    signed_in.goto("/")

    queue = signed_in.locator("[data-part=queue-mail]")
    expect(queue).to_have_class("is-bad")
    expect(queue).to_contain_text("no worker · 1 due")
    expect(queue.locator("svg.icon")).to_have_count(1)
    red = "element => getComputedStyle(element).color"
    usual = signed_in.locator("[data-part=database] .num").evaluate(red)
    assert queue.locator(".num").evaluate(red) != usual
    expect(signed_in.locator("#headline p")).to_contain_text("No worker serves mail")
    said = signed_in.locator("#headline code")
    expect(said).to_have_text("manage.py work --queue mail")
    for part in ("workers", "sweep", "due", "database", "redis", "live"):
        expect(signed_in.locator(f"[data-part={part}] svg.icon")).to_have_count(1)
    InboxEvent.objects.update(queue="default")
    run()


def test_s1_4_the_page_is_light_and_has_no_diagram(signed_in: Page) -> None:
    orders()
    answer = signed_in.goto("/")
    assert answer is not None
    assert len(answer.body()) < WEIGHT
    assert signed_in.locator(".picture").count() == 0
    drawn = signed_in.locator("svg[role=img]")
    assert drawn.count() == 1 + signed_in.locator("#definitions tr").count()
    for chart in drawn.all():
        expect(chart.locator("title")).to_contain_text("in the last hour")


def test_s1_5_an_item_is_opened_and_tried_again_with_one_thumb(phone: Page) -> None:
    failed(2)
    opened(phone, "/")
    first = phone.locator("#headline .acts a")
    for button in first.all():
        box = button.bounding_box()
        assert box
        assert box["height"] >= THUMB
        assert box["y"] + box["height"] < 844
    assert phone.evaluate("document.documentElement.scrollWidth") <= 380

    for target in (
        "#headline .acts a:first-child",
        "#members tbody tr:first-child a[href^='/processes/']",
        "#retry-button",
    ):
        phone.locator(target).first.tap()
    phone.fill("#retry-dialog textarea", "the exchange is there")
    phone.locator("#retry-dialog button[type=submit]").tap()

    expect(phone.locator("dialog[open]")).to_have_count(0)
    assert OperatorAction.objects.get().result == "done"


def test_all_is_well_and_it_is_said_when_that_was_looked_at(signed_in: Page) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    run()
    signed_in.goto("/")
    expect(signed_in.locator("#headline")).to_contain_text("Nothing needs a person")
    expect(signed_in.locator("#headline time")).to_be_visible()
