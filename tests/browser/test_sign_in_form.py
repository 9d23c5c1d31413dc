"""The form of the sign-in pages, which takes codes that count once."""

import pytest
from playwright.sync_api import Page, Route, expect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


PRESS = """
    const button = document.querySelector("button.primary");
    button.click();
    setTimeout(() => { button.click(); console.log("pressed again"); }, 100);
"""


def test_a_second_press_while_the_first_is_on_its_way_sends_nothing(page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.goto("/sign-in/")
    page.get_by_label("User name").fill("stranger")
    page.get_by_label("Password").fill("wrong")
    page.route("**/sign-in/", hold)
    with page.expect_console_message(lambda told: told.text == "pressed again"):
        page.evaluate(PRESS)
    held[-1].continue_()

    expect(page.get_by_role("alert")).to_be_visible()
    assert len(held) == 1
