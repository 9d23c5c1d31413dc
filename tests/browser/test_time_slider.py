"""S4, the time slider, in a browser: the page as it was at any moment, apart from now, and by keys alone."""

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import F
from playwright.sync_api import Locator, Page, Request, expect

from examples.order_listing.models import Order
from orchestrator.models import Checkpoint, ProcessInstance
from tests.browser.conftest import WIDTHS, live
from tests.browser.orders import failed, went_on
from tests.browser.pressing import current, opened, stayed
from tests.browser.samples import orders
from tests.services import emptying
from tests.services.long_history import lengthen
from tests.services.sizes import size

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

SLIDER = "#moment"


@pytest.fixture
def order(transactional_db: None) -> Order:
    """An order that waits for the exchange."""
    return failed()[0]


@pytest.fixture
def ended(signed_in: Page, order: Order) -> Page:
    """The page of an order that has gone all its way."""
    went_on(order)
    opened(signed_in, order)
    return signed_in


def place(page: Page) -> float:
    return float(page.input_value(SLIDER))


def test_s4_3_keys_go_back_and_forth_and_the_past_is_told_from_now(
    ended: Page, order: Order
) -> None:
    waiting = ended.locator("#n_AwaitingExternalCreation")
    current(ended, "Completed")
    expect(ended.locator(SLIDER)).to_have_attribute("aria-valuetext", "Now")
    assert place(ended) == 1000

    ended.focus(SLIDER)
    ended.keyboard.press("Home")

    expect(ended.locator("#past")).to_contain_text("You are looking at the past.")
    expect(waiting).to_have_class(re.compile(r"\bis-current\b"))
    expect(ended.locator("#n_Completed")).to_have_class(re.compile(r"\bhas-now\b"))
    expect(ended.locator("#data .differs")).to_contain_text(["external_id"])
    expect(ended.locator(".history tr.is-transition")).to_have_count(1)
    expect(ended.locator(SLIDER)).to_have_attribute(
        "aria-valuetext", re.compile(r"^Transition 1 of \d+, .*: OrderCreated$")
    )
    assert ended.url.endswith("?at=1")
    assert ended.evaluate("document.activeElement.id") == "moment"

    ended.keyboard.press("End")

    expect(ended.locator("#past .past")).to_have_count(0)
    current(ended, "Completed")
    assert "at=" not in ended.url
    stayed(ended)


def test_s4_3_the_mark_of_a_folded_gap_is_not_printed_over_a_time(
    ended: Page, order: Order
) -> None:
    """Also of one right behind the start, which has its date: it was yesterday."""
    signed_in, long_ago = ended, timedelta(days=1)
    first = Checkpoint.objects.filter(instance=order.process_id, revision=1)
    first.update(at=F("at") - long_ago)
    begun = ProcessInstance.objects.filter(pk=order.process_id)
    begun.update(started_at=F("started_at") - long_ago)
    opened(signed_in, order)
    expect(signed_in.locator(".ticks .fold")).to_have_count(1)
    for width in WIDTHS:
        signed_in.set_viewport_size({"width": width, "height": 900})
        every = signed_in.locator(".ticks text").all()
        boxes = [box for one in every if (box := one.bounding_box())]
        assert len(boxes) == 3
        for one, other in combinations(boxes, 2):
            beside = one["x"] + one["width"] <= other["x"]
            above = min(one["y"], other["y"]) + 11 <= max(one["y"], other["y"])
            assert beside or above, (width, boxes)


def test_s4_3_the_address_is_the_view_and_back_works(ended: Page) -> None:
    ended.click("#earlier")
    expect(ended.locator("#past .past")).to_be_visible()
    shared = ended.url

    ended.click("#past a.button")
    expect(ended.locator("#past .past")).to_have_count(0)
    ended.goto(shared)
    expect(ended.locator("#past .past")).to_be_visible()
    expect(ended.locator(".history tr.is-moment")).to_be_visible()

    ended.click("#past a.button")
    expect(ended.locator("#past .past")).to_have_count(0)
    ended.go_back()

    expect(ended.locator("#past .past")).to_be_visible()
    assert ended.url == shared


def test_s4_3_what_comes_meanwhile_moves_nothing_in_the_past(
    signed_in: Page, order: Order
) -> None:
    opened(signed_in, f"/processes/{order.process_id}/?at=1")
    expect(signed_in.locator("#past .past")).to_be_visible()
    newer = signed_in.locator("#past .newer")
    expect(newer).to_contain_text("1 newer")
    ledger = signed_in.locator("#history").inner_text()

    went_on(order)

    expect(newer).to_contain_text("4 newer")
    assert signed_in.locator("#history").inner_text() == ledger
    current(signed_in, "AwaitingExternalCreation")
    usable = "button[data-opens]:not([aria-disabled])"
    expect(signed_in.locator(usable)).to_have_count(0)


def test_s4_3_dragging_shows_the_moment_under_the_thumb(ended: Page) -> None:
    ended.locator(SLIDER).scroll_into_view_if_needed()
    box = ended.locator(SLIDER).bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    ended.mouse.move(box["x"] + box["width"] - 9, middle)
    ended.mouse.down()
    ended.mouse.move(box["x"] + 10, middle, steps=8)
    ended.mouse.up()

    expect(ended.locator("#past")).to_contain_text("After transition 1 of")
    current(ended, "AwaitingExternalCreation")


def test_s4_3_played_it_comes_back_to_now_by_itself(ended: Page) -> None:
    play = ended.locator("[data-play]")
    play.click()
    expect(ended.locator("#past")).to_contain_text("After transition 1 of")
    expect(play).to_have_attribute("aria-pressed", "true")

    expect(ended.locator("#past .past")).to_have_count(0)
    expect(play).to_have_attribute("aria-pressed", "false")


WAITING = "[data-node=AwaitingExternalCreation].is-current"
COMPLETED = "[data-node=Completed].is-current"


def beside(page: Page) -> tuple[Locator, Locator]:
    """The diagrams of then and of now."""
    then, now = "[data-diagram=state]", "[data-diagram=state-now]"
    return page.locator(then), page.locator(now)


def test_s4_3_then_and_now_stand_beside_each_other(ended: Page) -> None:
    ended.set_viewport_size({"width": 1440, "height": 900})
    ended.goto(f"{ended.url}?at=1")
    ended.click("#of-picture >> text=Beside now")
    live(ended)
    then, now = beside(ended)

    assert ended.url.endswith("?at=1&beside=now")
    expect(then.locator(WAITING)).to_be_visible()
    expect(now.locator(COMPLETED)).to_be_visible()
    left, right = then.bounding_box(), now.bounding_box()
    assert left
    assert right
    assert right["x"] >= left["x"] + left["width"] - 1
    ids = "[...document.querySelectorAll('[id]')].map(one => one.id)"
    found = ended.evaluate(ids)
    assert len(found) == len(set(found))

    ended.focus(SLIDER)
    ended.keyboard.press("End")
    expect(now).to_be_hidden()
    ended.keyboard.press("Home")
    expect(now).to_be_visible()
    assert ended.url.endswith("beside=now&at=1")

    ended.click("#of-picture >> text=This moment alone")
    expect(ended.locator("#past .past")).to_be_visible()
    expect(now).to_have_count(0)


def test_s4_3_the_diagram_of_now_is_live_beside_that_of_then(
    signed_in: Page, order: Order
) -> None:
    opened(signed_in, f"/processes/{order.process_id}/?at=1&beside=now")
    then, now = beside(signed_in)
    expect(now.locator(WAITING)).to_be_visible()

    went_on(order)

    expect(now.locator(COMPLETED)).to_be_visible()
    expect(then.locator(WAITING)).to_be_visible()


MANY = size(usual=3_000, full=50_000)
"""Transitions of a long process."""

SHOWN = "[...document.querySelectorAll('#history tr[id]')].map(row => Number(row.id.slice(9)))"


@pytest.fixture
def long(signed_in: Page) -> Iterator[UUID]:
    """A process with a long history."""
    process_id = orders()["early"].process_id
    lengthen(process_id, MANY)
    yield process_id
    signed_in.goto("about:blank")
    emptying.empty(connection)  # these rows are not the engine's


def test_s4_4_a_long_history_is_scrolled_both_ways_with_few_rows_in_the_page(
    signed_in: Page, long: UUID
) -> None:
    opened(signed_in, f"/processes/{long}/")
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
    presses = 20
    opened(signed_in, f"/processes/{long}/?at={MANY // 2}")
    past = signed_in.locator("#past")
    expect(past).to_contain_text(f"After transition {MANY // 2} of")
    signed_in.wait_for_load_state("networkidle")
    asked: list[Request] = []
    signed_in.on(
        "request", lambda one: asked.append(one) if str(long) in one.url else None
    )

    signed_in.focus(SLIDER)
    for _ in range(presses):
        signed_in.keyboard.press("ArrowRight")
    expect(past).to_contain_text(f"After transition {MANY // 2 + presses} of")
    signed_in.wait_for_load_state("networkidle")

    assert 1 <= len(asked) <= presses + 2  # the page looks by itself every ten seconds
    assert all("since=" in one.url for one in asked)
    shown = signed_in.evaluate(SHOWN)
    assert shown[0] == MANY // 2 + presses
    assert len(shown) <= 300
    assert signed_in.locator("#gantt g.visit").count() <= 160
