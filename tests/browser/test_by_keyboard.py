"""What operators do most, from the first page to its effect, by keyboard alone: no mouse, and no other address."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.testing import run
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.fixtures import helpdesk
from tests.browser.conftest import live
from tests.browser.orders import exchange_back, failed, waiting_order
from tests.browser.pressing import opened
from tests.services.bulk import verdicts, worked_on
from tests.services.site import live_site

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
]

MOST = 120
"""Presses of Tab after which nobody looks any further."""

UNSEEN = """() => {
    const here = document.activeElement;
    if (here === document.body) return "";  // round the end of the page
    const box = here.getBoundingClientRect();
    const inside = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
    const { outlineStyle, outlineWidth } = getComputedStyle(here);
    const ringed = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
    return here.matches(":focus-visible") && inside && ringed ? "" : here.outerHTML.slice(0, 200);
}"""
"""What has the focus without showing it: no ring around it, or outside the window."""


FEW = 20
"""The most keys for one task, without the letters of what is written."""

pressed: list[str] = []


@pytest.fixture(autouse=True)
def counted() -> None:
    """Count the keys of each test."""
    pressed.clear()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        pressed.append(key)
        page.keyboard.press(key)


def has_focus(target: Locator) -> bool:
    return bool(target.evaluate("element => element === document.activeElement"))


def seen(page: Page) -> None:
    """What has the focus shows it."""
    assert page.evaluate(UNSEEN) == ""


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until this is reached; each place on the way shows that it has the focus."""
    expect(target).to_have_count(1)
    for _ in range(MOST):
        if has_focus(target):
            return
        press(page, "Tab")
        seen(page)
    raise AssertionError(f"not reached by Tab: {target}")


def to_content(page: Page) -> None:
    """Leave the menu behind by the link that is reached first."""
    press(page, "Tab")
    expect(page.locator(".skip")).to_be_focused()
    seen(page)
    press(page, "Enter")
    expect(page.locator("#main")).to_be_focused()


def to_row(page: Page, rows: str) -> None:
    press(page, "j")
    expect(page.locator(f"{rows} a.subject").first).to_be_focused()
    seen(page)


PREFIX = "?jr "
"""Of a reason: keys that would do something, if nobody wrote."""


def asked_and_sent(page: Page, action: str, reason: str) -> None:
    """Write the reason into the dialog that has opened, and send it."""
    dialog = page.locator(f"#{action}-dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator("textarea")).to_be_focused()
    seen(page)
    page.keyboard.type(f"{PREFIX}{reason}")
    expect(dialog.locator("textarea")).to_have_value(f"{PREFIX}{reason}")
    expect(page.locator("#keys")).to_be_hidden()
    press(page, "ControlOrMeta+Enter")
    expect(dialog).to_be_hidden()


def status_of(process: object) -> str:
    return ProcessInstance.objects.get(pk=str(process)).status


def what_was_done() -> tuple[object, ...]:
    """The only row of the audit."""
    fields = ("action", "result", "reason", "instance")
    found: tuple[object, ...] = OperatorAction.objects.values_list(*fields).get()
    return found


def test_one_process_that_has_failed_is_retried_by_keyboard(signed_in: Page) -> None:
    process = failed()[0].process_id
    opened(signed_in, "/")

    to_content(signed_in)
    tab_to(signed_in, signed_in.locator("#needs a[data-kind=failures]"))
    press(signed_in, "Enter")
    signed_in.wait_for_url("**/failures/")
    to_row(signed_in, "#failures")
    press(signed_in, "Enter")
    signed_in.wait_for_url(re.compile("/failures/[0-9a-f]+/"))
    to_row(signed_in, "#members")
    press(signed_in, "Enter")
    signed_in.wait_for_url(f"**/processes/{process}/")
    live(signed_in)
    press(signed_in, "r")
    asked_and_sent(signed_in, "retry", "the exchange is back")

    assert len(pressed) <= FEW, pressed
    expect(signed_in.locator("#flash")).to_contain_text("Trying again")
    expect(signed_in.locator("#retry-button")).to_be_focused()
    seen(signed_in)
    with exchange_back():
        run()
    expect(signed_in.locator(".trouble")).to_have_count(0)
    assert status_of(process) == "waiting"
    assert what_was_done() == ("retry", "done", "?jr the exchange is back", process)


def test_a_group_of_failures_is_tried_again_by_keyboard_alone(signed_in: Page) -> None:
    processes = [order.process_id for order in failed(3)]
    opened(signed_in, "/")

    press(signed_in, "g", "f")
    signed_in.wait_for_url("**/failures/")
    to_row(signed_in, "#failures")
    press(signed_in, "r")
    signed_in.wait_for_url("**/operations/begin/**")
    press(signed_in, "i")
    expect(signed_in.locator("#begin textarea[name=reason]")).to_be_focused()
    signed_in.keyboard.type("the exchange is back")
    press(signed_in, "ControlOrMeta+Enter")
    signed_in.wait_for_url(re.compile(r"/operations/[0-9a-f-]{36}/"))
    assert len(pressed) <= FEW, pressed
    live(signed_in)
    operation = BulkOperation.objects.get()
    with exchange_back():
        worked_on(operation)

    expect(signed_in.locator("#settled")).to_have_text("3 of 3 have their verdict")
    expect(signed_in.locator(".head .chip")).to_have_text("completed")
    assert verdicts(operation) == {"done": 3}
    assert {status_of(one) for one in processes} == {"waiting"}
    begun = OperatorAction.objects.get(action="start_bulk")
    assert (begun.bulk_id, begun.result) == (operation.pk, "done")
    each = OperatorAction.objects.filter(action="retry", bulk=operation)
    assert each.values_list("instance", flat=True).distinct().count() == 3
    assert each.count() == 3


def test_a_decision_is_taken_by_keyboard_alone(signed_in: Page) -> None:
    first, second = inquiry("T-1").pk, inquiry("T-2").pk
    opened(signed_in, "/")

    press(signed_in, "g", "d")
    signed_in.wait_for_url("**/decisions/")
    live(signed_in)
    rows = signed_in.locator("#decisions tbody tr")
    expect(rows).to_have_count(2)
    press(signed_in, "j")
    press(signed_in, "j")
    refuse = rows.nth(1).locator("[data-given=refuse]")
    tab_to(signed_in, refuse)
    press(signed_in, "Enter")
    expect(signed_in.locator("#decide-dialog .subject")).to_contain_text("refuse")
    asked_and_sent(signed_in, "decide", "it is too dear")

    assert len(pressed) <= FEW, pressed
    expect(signed_in.locator("#flash")).to_contain_text("Decided")
    expect(rows).to_have_count(1)
    run()
    assert (status_of(first), status_of(second)) == ("waiting", "completed")
    assert what_was_done() == ("decide", "done", "?jr it is too dear", second)
    expect(rows.locator("[data-opens]").first).to_be_focused()
    seen(signed_in)


def test_a_process_is_found_and_paused_by_keyboard(signed_in: Page) -> None:
    process = failed()[0].process_id
    opened(signed_in, "/")

    press(signed_in, "/")
    signed_in.keyboard.type(str(process))
    press(signed_in, "Enter")
    signed_in.wait_for_url(f"**/processes/{process}/")
    live(signed_in)
    press(signed_in, "p")
    asked_and_sent(signed_in, "pause", "a holiday")

    expect(signed_in.locator("#unpause-button")).to_be_focused()
    assert len(pressed) <= FEW, pressed
    assert what_was_done() == ("pause", "done", "?jr a holiday", process)


def test_an_event_is_sent_to_a_process_of_the_list_by_keyboard(signed_in: Page) -> None:
    process = waiting_order().process_id
    opened(signed_in, "/processes/")

    to_row(signed_in, "#rows")
    press(signed_in, "Enter")
    signed_in.wait_for_url(f"**/processes/{process}/")
    live(signed_in)
    press(signed_in, "s")
    signed_in.wait_for_url("**/events/send/**")
    press(signed_in, "i")
    told = {"order_id": "A-1", "external_id": "EX-1", "description": "50 MWh"}
    for name, text in told.items():
        tab_to(signed_in, signed_in.locator(f"[name=field-{name}]"))
        signed_in.keyboard.type(text)
    reason = signed_in.locator("textarea[name=reason]")
    tab_to(signed_in, reason)
    signed_in.keyboard.type("the exchange told us by telephone")
    press(signed_in, "ControlOrMeta+Enter")

    expect(signed_in.locator("#flash")).to_contain_text("Sent")
    assert len(pressed) <= FEW, pressed
    run()
    event = InboxEvent.objects.get(process=process, type="ExternalOrderCreated")
    assert (event.body["external_id"], event.verdict) == ("EX-1", "moved")


def test_a_repair_is_staged_and_applied_by_keyboard_alone(signed_in: Page) -> None:
    process = failed()[0].process_id
    opened(signed_in, "/")

    press(signed_in, "/")
    expect(signed_in.locator(".find input")).to_be_focused()
    seen(signed_in)
    signed_in.keyboard.type(str(process))
    press(signed_in, "Enter")
    signed_in.wait_for_url(f"**/processes/{process}/")
    to_content(signed_in)
    tab_to(signed_in, signed_in.locator("#header a[href$='/repair/']"))
    press(signed_in, "Enter")
    signed_in.wait_for_url("**/repair/")

    to_content(signed_in)
    data = signed_in.locator("#data-value")
    tab_to(signed_in, data)
    changed = data.input_value().replace("0 MWh", "60 MWh")
    press(signed_in, "ControlOrMeta+a")
    signed_in.keyboard.insert_text(changed)
    tab_to(signed_in, signed_in.locator("form:has(#data-value) button[type=submit]"))
    press(signed_in, "Enter")
    staged = signed_in.locator("#summary .staged li")
    expect(staged).to_have_count(1)

    to_content(signed_in)
    target = signed_in.locator("#move-target")
    tab_to(signed_in, target)
    signed_in.keyboard.type("Awaiting external l")
    expect(target).to_have_value("AwaitingExternalListing")
    tab_to(signed_in, signed_in.locator("form:has(#move-target) button[type=submit]"))
    press(signed_in, "Enter")
    expect(staged).to_have_count(2)
    assert not OperatorAction.objects.exists()

    to_content(signed_in)
    tab_to(signed_in, signed_in.locator("#apply-reason"))
    signed_in.keyboard.type("the exchange has it already")
    tab_to(signed_in, signed_in.locator("#apply button[type=submit]"))
    press(signed_in, "Enter")
    signed_in.wait_for_url(f"**/processes/{process}/")

    order = ProcessInstance.objects.get(pk=process)
    assert order.step == "AwaitingExternalListing"
    assert order.data["description"].startswith("60 MWh")
    assert what_was_done() == ("repair", "done", "the exchange has it already", process)
