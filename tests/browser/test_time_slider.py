"""S4, the time slider, in a browser: the page as it was at any moment, apart from now, and by keys alone."""

import re
from collections.abc import Iterator
from uuid import UUID

import pytest
from django.db import connection
from playwright.sync_api import Page, Request, expect

from examples.order_listing.models import Order
from orchestrator.engine.drain import drain
from tests.browser.conftest import fits, live
from tests.browser.orders import created_outside
from tests.browser.samples import orders
from tests.services import emptying
from tests.services.long_history import lengthen
from tests.services.sizes import size

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

SLIDER = "#moment"


@pytest.fixture
def order(transactional_db: None) -> Order:
    """An order that waits for the exchange."""
    return orders()["failed"]


@pytest.fixture
def opened(signed_in: Page, order: Order) -> Page:
    """The page of an order that has gone all its way."""
    go_on(order)
    signed_in.goto(f"/processes/{order.process_id}/")
    live(signed_in)
    signed_in.evaluate("window.loadedOnce = true")
    return signed_in


def go_on(order: Order) -> None:
    """The exchange answers, and the order goes to its end."""
    created_outside(order)
    while drain():
        pass


def place(page: Page) -> float:
    return float(page.input_value(SLIDER))


def test_s4_3_keys_go_back_and_forth_and_the_past_is_told_from_now(
    opened: Page, order: Order
) -> None:
    waiting = opened.locator("#n_AwaitingExternalCreation")
    expect(opened.locator("#n_Completed.is-current")).to_be_visible()
    expect(opened.locator(SLIDER)).to_have_attribute("aria-valuetext", "Now")
    assert place(opened) == 1000

    opened.focus(SLIDER)
    opened.keyboard.press("Home")

    expect(opened.locator("#past")).to_contain_text("You are looking at the past.")
    expect(waiting).to_have_class(re.compile(r"\bis-current\b"))
    expect(opened.locator("#n_Completed")).to_have_class(re.compile(r"\bhas-now\b"))
    expect(opened.locator("#data .differs")).to_contain_text(["external_id"])
    expect(opened.locator(".ledger tr.is-transition")).to_have_count(1)
    expect(opened.locator(SLIDER)).to_have_attribute(
        "aria-valuetext", re.compile(r"^Transition 1 of \d+, .*: OrderCreated$")
    )
    assert opened.url.endswith("?at=1")
    assert opened.evaluate("document.activeElement.id") == "moment"

    opened.keyboard.press("End")

    expect(opened.locator("#past .past")).to_have_count(0)
    expect(opened.locator("#n_Completed.is-current")).to_be_visible()
    assert "at=" not in opened.url
    assert opened.evaluate("window.loadedOnce") is True


def test_s4_3_the_address_is_the_view_and_back_works(opened: Page) -> None:
    opened.click("#earlier")
    expect(opened.locator("#past .past")).to_be_visible()
    shared = opened.url

    opened.click("#past a.button")
    expect(opened.locator("#past .past")).to_have_count(0)
    opened.goto(shared)
    expect(opened.locator("#past .past")).to_be_visible()
    expect(opened.locator(".ledger tr.is-moment")).to_be_visible()

    opened.click("#past a.button")
    expect(opened.locator("#past .past")).to_have_count(0)
    opened.go_back()

    expect(opened.locator("#past .past")).to_be_visible()
    assert opened.url == shared


def test_s4_3_what_comes_meanwhile_moves_nothing_in_the_past(
    signed_in: Page, order: Order
) -> None:
    opened = signed_in
    opened.goto(f"/processes/{order.process_id}/?at=1")
    live(opened)
    expect(opened.locator("#past .past")).to_be_visible()
    newer = opened.locator("#past .newer")
    expect(newer).to_contain_text("1 newer")
    ledger = opened.locator("#ledger").inner_text()

    go_on(order)

    expect(newer).to_contain_text("4 newer")
    assert opened.locator("#ledger").inner_text() == ledger
    expect(opened.locator("#n_AwaitingExternalCreation.is-current")).to_be_visible()
    expect(opened.locator("button[data-opens]:not([aria-disabled])")).to_have_count(0)


def test_s4_3_dragging_shows_the_moment_under_the_thumb(opened: Page) -> None:
    opened.locator(SLIDER).scroll_into_view_if_needed()
    box = opened.locator(SLIDER).bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    opened.mouse.move(box["x"] + box["width"] - 9, middle)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 10, middle, steps=8)
    opened.mouse.up()

    expect(opened.locator("#past")).to_contain_text("After transition 1 of")
    expect(opened.locator("#n_AwaitingExternalCreation.is-current")).to_be_visible()


def test_s4_3_played_it_comes_back_to_now_by_itself(opened: Page) -> None:
    play = opened.locator("[data-play]")
    play.click()
    expect(opened.locator("#past")).to_contain_text("After transition 1 of")
    expect(play).to_have_attribute("aria-pressed", "true")

    expect(opened.locator("#past .past")).to_have_count(0)
    expect(play).to_have_attribute("aria-pressed", "false")


def test_s4_3_nothing_scrolls_sideways_in_the_past(opened: Page) -> None:
    for place in ("?at=1", "?at=1&beside=now"):
        opened.goto(f"{opened.url.partition('?')[0]}{place}")
        fits(opened)


def test_s4_3_then_and_now_stand_beside_each_other(opened: Page) -> None:
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.goto(f"{opened.url}?at=1")
    opened.click("#of-picture >> text=Beside now")
    live(opened)
    then, now = (opened.locator(f"[data-diagram={n}]") for n in ("state", "state-now"))
    waiting, completed = "[data-node=AwaitingExternalCreation]", "[data-node=Completed]"

    assert opened.url.endswith("?at=1&beside=now")
    expect(then.locator(f"{waiting}.is-current")).to_be_visible()
    expect(now.locator(f"{completed}.is-current")).to_be_visible()
    left, right = then.bounding_box(), now.bounding_box()
    assert left is not None
    assert right is not None
    assert right["x"] >= left["x"] + left["width"] - 1
    ids = "[...document.querySelectorAll('[id]')].map(one => one.id)"
    found = opened.evaluate(ids)
    assert len(found) == len(set(found))

    opened.focus(SLIDER)
    opened.keyboard.press("End")
    expect(now).to_be_hidden()
    opened.keyboard.press("Home")
    expect(now).to_be_visible()
    assert opened.url.endswith("beside=now&at=1")

    opened.click("#of-picture >> text=This moment alone")
    expect(opened.locator("#past .past")).to_be_visible()
    expect(now).to_have_count(0)


def test_s4_3_the_diagram_of_now_is_live_beside_that_of_then(
    signed_in: Page, order: Order
) -> None:
    signed_in.goto(f"/processes/{order.process_id}/?at=1&beside=now")
    live(signed_in)
    then, now = (
        signed_in.locator(f"[data-diagram={n}]") for n in ("state", "state-now")
    )
    expect(
        now.locator("[data-node=AwaitingExternalCreation].is-current")
    ).to_be_visible()

    go_on(order)

    expect(now.locator("[data-node=Completed].is-current")).to_be_visible()
    waiting = then.locator("[data-node=AwaitingExternalCreation].is-current")
    expect(waiting).to_be_visible()


MANY = size(usual=3_000, full=50_000)
"""Transitions of a long process."""

SHOWN = "[...document.querySelectorAll('#ledger tr[id]')].map(row => Number(row.id.slice(9)))"


@pytest.fixture
def long(signed_in: Page) -> Iterator[UUID]:
    """A process with a long history."""
    process_id = orders()["early"].process_id
    lengthen(process_id, MANY)
    yield process_id
    signed_in.goto("about:blank")
    emptying.empty(connection)  # these rows are not the engine's


def test_s4_4_a_long_ledger_is_scrolled_both_ways_with_few_rows_in_the_page(
    signed_in: Page, long: UUID
) -> None:
    signed_in.goto(f"/processes/{long}/")
    live(signed_in)
    down = "document.querySelector('.scrolls').scrollBy(0, 4000)"
    for wanted in (MANY - 120, MANY - 500, MANY - 1_000):
        while min(signed_in.evaluate(SHOWN)) > wanted:
            signed_in.evaluate(down)
            signed_in.wait_for_timeout(50)
        shown = signed_in.evaluate(SHOWN)
        assert len(shown) <= 300
        assert shown == [*range(shown[0], shown[-1] - 1, -1)]
    while max(signed_in.evaluate(SHOWN)) < MANY:
        signed_in.evaluate(down.replace("4000", "-4000"))
        signed_in.wait_for_timeout(50)
    shown = signed_in.evaluate(SHOWN)
    assert len(shown) <= 300
    assert shown == [*range(MANY, shown[-1] - 1, -1)]


def test_s4_4_keys_on_the_slider_of_a_long_process_cost_a_request_each_at_most(
    signed_in: Page, long: UUID
) -> None:
    opened, presses = signed_in, 20
    opened.goto(f"/processes/{long}/?at={MANY // 2}")
    live(opened)
    past = opened.locator("#past")
    expect(past).to_contain_text(f"After transition {MANY // 2} of")
    opened.wait_for_load_state("networkidle")
    asked: list[Request] = []
    opened.on(
        "request", lambda one: asked.append(one) if str(long) in one.url else None
    )

    opened.focus(SLIDER)
    for _ in range(presses):
        opened.keyboard.press("ArrowRight")
    expect(past).to_contain_text(f"After transition {MANY // 2 + presses} of")
    opened.wait_for_load_state("networkidle")

    assert 1 <= len(asked) <= presses + 2  # the page looks by itself every ten seconds
    assert all("since=" in one.url for one in asked)
    shown = opened.evaluate(SHOWN)
    assert shown[0] == MANY // 2 + presses
    assert len(shown) <= 300
    assert opened.locator("#gantt g.visit").count() <= 160
