"""S12.1 and S12.4 in a browser: what a grant gives for one definition, and what readers see of all buttons."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from playwright.sync_api import Locator, Page, expect

from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import DefinitionGrant, OperatorAction
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.process_managers.desk import place as parcel_placed
from tests.apps.process_managers.fixtures import parcels
from tests.browser.pressing import opened, press
from tests.services.cases import words
from tests.services.forms_of_actions import failed_order, place_for
from tests.services.hired import hire_for_long
from tests.services.site import Site, live_site

__all__ = ["helpdesk", "live_site", "parcels"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk", "parcels"),
]

NOT_ALLOWED = "Your account may not do this."
NOT_PARCELS = "Your account may not do this for shipping."

ACTING = ", ".join(
    f"main {what}"
    for what in (
        "[data-opens]",
        ".act > :is(button, a)",
        "form[method=post] [type=submit]:not(#save-view *, #preview-button)",
    )
)
"""What does something. Everybody saves lists for themselves, and a preview writes nothing."""

MOST = 150
"""Presses of Tab after which every button of a page has been reached."""

LOOKS = """button => {
    const look = () => {
        const { color, backgroundColor, cursor } = getComputedStyle(button);
        return [color, backgroundColor, cursor].join(" ");
    };
    const found = [look()];
    const why = ["disabled", "aria-disabled"].filter(name => button.hasAttribute(name));
    const said = why.map(name => button.getAttribute(name));
    why.forEach(name => button.removeAttribute(name));
    found.push(look());
    why.forEach((name, place) => button.setAttribute(name, said[place]));
    return found;
}"""
"""How a button looks, and how it would look if it could be pressed."""


UNCOVERED = """why => {
    const box = why.getBoundingClientRect();
    const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return why.contains(seen);
}"""
"""Whether a text is what one sees at its place: nothing lies on it, and nothing cuts it off."""

OPENED = """() => {
    const closed = document.querySelectorAll("main details:not([open]):has(button) > summary");
    closed.forEach(summary => summary.click());
}"""
"""Opens what stands behind others, as a reader does: so it stays open when the page is brought up to date."""


@pytest.fixture
def watching(transactional_db: None, page: Page, live_site: Site, viewer: User) -> Page:
    """The page of somebody who may only look."""
    page.goto(live_site.link(viewer))
    return page


def why_of(button: Locator) -> Locator:
    """What says why a button cannot be pressed."""
    place = button.get_attribute("aria-describedby")
    assert place, button.evaluate("element => element.outerHTML")
    return button.page.locator(f"[id='{place}']")


# S12.1


@pytest.fixture
def granted(watching: Page, viewer: User) -> Page:
    """The same, who may escalate what is of the orders."""
    group = Group.objects.create(name="those of the orders")
    permission = Permission.objects.get(codename=OPERATIONS["escalate"].codename)
    given: dict[str, Any] = {"group": group, "permission": permission}
    DefinitionGrant.objects.create(definition="order-listing", **given)
    viewer.groups.add(group)
    return watching


def test_s12_1_a_grant_gives_its_button_for_one_definition_and_no_other_button(
    granted: Page, viewer: User
) -> None:
    order = failed_order()
    opened(granted, order)
    button = granted.locator("#escalate-button")
    expect(button).not_to_have_attribute("aria-disabled", "true")
    expect(granted.locator("#cancel-button")).to_have_attribute("aria-disabled", "true")

    press(granted, "escalate", "they have called twice")

    expect(granted.locator("#flash .notice.good")).to_be_visible()
    expect(granted.locator(".head .chip", has_text="Escalated")).to_be_visible()
    done = OperatorAction.objects.get()
    assert (done.action, done.result, done.actor) == ("escalate", "done", viewer)
    assert done.instance_id == order.pk


def test_s12_1_on_another_definition_a_disabled_button_names_it(granted: Page) -> None:
    parcel = parcel_placed("P-1")
    opened(granted, parcel)
    button = granted.locator("#escalate-button")
    expect(button).to_have_attribute("aria-disabled", "true")
    why = why_of(button)
    expect(why).to_be_hidden()

    button.hover()
    expect(why).to_be_visible()
    expect(why).to_have_text(NOT_PARCELS)
    button.click(force=True)
    expect(granted.locator("dialog[open]")).to_have_count(0)
    assert not OperatorAction.objects.exists()


# S12.4


def everything(administrator: User) -> list[str]:
    """The pages that have buttons, with something there for each of these."""
    names = words("""retry decide redeliver send start_bulk pause_bulk mark_handled rename_view
        approve_repair""")
    lists = ("/", "/processes/", "/failures/", "/decisions/", "/waits/", "/tokens/")
    # With a worker the first page begins with the failures, and with what mends them.
    hire_for_long()
    return [*(place_for(name, administrator).page for name in names), *lists]


def revealed(page: Page) -> list[Locator]:
    """The buttons that a page has, also those behind others."""
    page.evaluate(OPENED)
    return page.locator(ACTING).all()


def refuses_visibly(button: Locator) -> None:
    """It looks as what cannot be pressed, and says why where the mouse is and where the focus is."""
    page, why = button.page, why_of(button)
    looks, otherwise = button.evaluate(LOOKS)
    assert "not-allowed" in looks, button.evaluate("element => element.outerHTML")
    assert looks != otherwise
    expect(why).to_have_text(NOT_ALLOWED)
    if button.is_disabled() and not button.get_attribute("aria-disabled"):
        expect(why).to_be_visible()  # it takes no focus, so the words stand there
        return
    button.evaluate("element => element.scrollIntoView({block: 'center'})")
    expect(why).to_be_hidden()
    button.hover()
    expect(why).to_be_visible()
    assert why.evaluate(UNCOVERED), button.evaluate("element => element.outerHTML")
    page.mouse.move(0, 0)
    expect(why).to_be_hidden()
    button.focus()
    expect(why).to_be_visible()
    assert why.evaluate(UNCOVERED)
    button.blur()


def test_s12_4_who_may_only_look_sees_every_button_disabled_and_why(
    watching: Page, administrator: User
) -> None:
    for address in everything(administrator):
        opened(watching, address)
        buttons = revealed(watching)
        assert buttons, address
        for button in buttons:
            refuses_visibly(button)


def test_s12_4_by_keys_each_button_says_why_and_does_nothing(watching: Page) -> None:
    opened(watching, failed_order())
    there = {button.get_attribute("id") for button in revealed(watching)}
    assert {"retry-button", "cancel-button", "send-1"} <= there
    reached = set()
    before = watching.url

    watching.locator("h1").click()
    for _ in range(MOST):
        watching.keyboard.press("Tab")
        here = watching.locator("main :focus")
        name = here.get_attribute("id") if here.count() else None
        if name not in there:
            continue
        reached.add(name)
        expect(why_of(here)).to_be_visible()
        assert why_of(here).evaluate(UNCOVERED)
        for key in ("Enter", "Space"):
            watching.keyboard.press(key)
        expect(watching.locator("dialog[open]")).to_have_count(0)

    assert reached == there
    assert watching.url == before
    # Its own key leads there, and does no more.
    watching.keyboard.press("r")
    expect(watching.locator("#retry-button")).to_be_focused()
    expect(watching.locator("#retry-button-why")).to_be_visible()
    expect(watching.locator("dialog[open]")).to_have_count(0)
    assert not OperatorAction.objects.exists()
