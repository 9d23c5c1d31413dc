"""S2, the map of a definition in a browser: numbers open their lists and change live, overlays can be read."""

import re
from itertools import combinations, pairwise
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.testing import run
from tests.browser.conftest import WIDTHS
from tests.browser.pressing import opened, stayed
from tests.browser.samples import orders
from tests.browser.test_pages import faint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

HOME = "/definitions/order-listing/"
LIGHT = """() => [...document.querySelectorAll(".heat")].map((swatch) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = getComputedStyle(swatch).backgroundColor;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
})"""


def badge(page: Page, step: str, name: str) -> Locator:
    """The number in one corner of a step."""
    return page.locator(f"[data-badges={step}] .badge.{name} text")


def test_s2_1_numbers_change_without_a_reload_and_the_picture_stays_where_it_is(
    signed_in: Page,
) -> None:
    orders()
    opened(signed_in, HOME)
    expect(badge(signed_in, "AwaitingExternalCreation", "failed")).to_have_text("!2")
    expect(badge(signed_in, "AwaitingExternalListing", "finished")).to_be_hidden()
    signed_in.click("[data-zoom=in]")
    enlarged = re.compile(r"scale\(1\.")
    expect(signed_in.locator(".picture").first).to_have_attribute("style", enlarged)
    place = "() => document.querySelector('.picture').style.transform"
    before = signed_in.evaluate(place)

    place_order(Destination.INTERNAL, "one more")
    place_order(Destination.EXTERNAL, "one that fails")
    run()

    expect(badge(signed_in, "Completed", "finished")).to_have_text("✓2")
    expect(badge(signed_in, "AwaitingExternalCreation", "failed")).to_have_text("!3")
    told = signed_in.locator("#n_AwaitingExternalCreation > title")
    expect(told).to_have_text("Awaiting external creation: 3 failed")
    assert signed_in.evaluate(place) == before
    stayed(signed_in)


def test_s2_2_a_step_and_a_number_open_their_processes_by_mouse_and_by_keyboard(
    signed_in: Page,
) -> None:
    orders()
    signed_in.goto(HOME)

    signed_in.click("#n_AwaitingExternalCreation")
    signed_in.wait_for_url("**/?*step=AwaitingExternalCreation&doing=here")
    expect(signed_in.locator(".chip.filter", has_text="Step")).to_have_count(1)
    expect(signed_in.locator("#rows tr")).to_have_count(2)
    signed_in.go_back()
    signed_in.locator("a:has(#n_Completed)").focus()
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url("**/?*step=Completed")
    signed_in.go_back()

    badge(signed_in, "AwaitingExternalCreation", "failed").click()
    signed_in.wait_for_url("**/?step=AwaitingExternalCreation&doing=failed**")
    expect(signed_in.locator("#rows tr")).to_have_count(2)
    chip = signed_in.locator(".chip.filter", has_text="There")
    expect(chip).to_contain_text("failed")
    chip.click()
    expect(chip).to_have_count(0)
    signed_in.go_back()
    link = signed_in.locator("[data-badges=Completed] a:has(.finished)")
    link.focus()
    edge = "link => getComputedStyle(link.querySelector('rect')).strokeWidth"
    assert link.evaluate(edge) == "3px"
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url("**doing=left-hour**")
    expect(signed_in.locator("#rows tr")).to_have_count(1)


def test_s2_2_it_works_without_scripts(without_scripts: Page) -> None:
    orders()
    without_scripts.goto(HOME)

    badge(without_scripts, "AwaitingExternalCreation", "failed").click()

    expect(without_scripts.locator("#rows tr")).to_have_count(2)


def test_s2_3_an_overlay_is_chosen_and_can_be_read_in_each_theme_and_without_colour(
    checked: Page,
) -> None:
    orders()
    checked.goto(HOME)

    checked.click("#map .tabs a:has-text('Failure rate')")
    checked.click("#map .tabs a:has-text('Last week')")

    checked.wait_for_url(re.compile("overlay=failures"))
    assert "window=week" in checked.url
    expect(badge(checked, "AwaitingExternalCreation", "value")).to_have_text("100 %")
    expect(badge(checked, "AwaitingExternalCreation", "failed")).to_have_count(1)
    expect(badge(checked, "AwaitingExternalCreation", "failed")).to_be_hidden()
    assert faint(checked) == []
    # In grey each level is told from the one before.
    for theme in ("light", "dark"):
        checked.emulate_media(color_scheme=theme)
        light = checked.evaluate(LIGHT)
        steps = [abs(one - other) for one, other in pairwise(light)]
        assert len(light) == 5
        assert min(steps) > 5, light
        assert light in (sorted(light), sorted(light, reverse=True))


def test_s2_4_steps_that_were_never_visited_are_dashed_also_when_one_is_first_visited(
    signed_in: Page,
) -> None:
    place_order(Destination.INTERNAL, "one")
    run()
    opened(signed_in, HOME)
    step = signed_in.locator("#n_AwaitingExternalCreation")
    expect(step).to_have_class(re.compile("is-unvisited"))
    dashes = "step => getComputedStyle(step.querySelector('path')).strokeDasharray"
    assert step.evaluate(dashes) != "none"

    place_order(Destination.EXTERNAL, "another")
    run()

    expect(step).not_to_have_class(re.compile("is-unvisited"))


def test_s2_3_at_every_width_no_number_lies_on_another(signed_in: Page) -> None:
    orders()
    for width in WIDTHS:
        signed_in.set_viewport_size({"width": width, "height": 900})
        signed_in.goto(HOME)
        none_lies_on_another(signed_in)


def none_lies_on_another(page: Page) -> None:
    badges = page.locator(".badge:visible").all()
    boxes: list[Any] = [found for one in badges if (found := one.bounding_box())]
    assert len(boxes) >= 4
    for one, other in combinations(boxes, 2):
        ends = [
            (one["x"] + one["width"], other["x"]),
            (one["y"] + one["height"], other["y"]),
        ]
        starts = [
            (other["x"] + other["width"], one["x"]),
            (other["y"] + other["height"], one["y"]),
        ]
        assert any(end <= start + 1 for end, start in ends + starts), (one, other)
