"""What is said by itself, and where the focus is, to people who use a screen reader or only keys."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from orchestrator.engine.operations import decide, pause, unpause
from orchestrator.models import BulkOperation, ProcessInstance
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.fixtures import helpdesk
from tests.browser.orders import failed, waiting_order, went_on
from tests.browser.pressing import opened, press, submit
from tests.browser.samples import orders
from tests.services.asking import asked
from tests.services.bulk import begun, worked_on
from tests.services.hired import hire_for_long
from tests.services.site import live_site

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
]

COUNTS = """() => {
    window.announced = [];
    const regions = "[role=status], [role=alert], [aria-live]";
    new MutationObserver((changes) => {
        for (const change of changes) {
            const element = change.target.nodeType === 1 ? change.target : change.target.parentElement;
            const region = element?.closest(regions);
            if (region && region.textContent.trim()) window.announced.push(region.textContent.trim());
        }
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""
"""Notes what changes in places whose changes are said."""

STOPS = """() => [...document.querySelectorAll("[data-pans], [data-pans] a[href]")]
    .filter((each) => each.tabIndex >= 0 && each.matches("a, [tabindex]")).map((each) => each.tagName)"""
"""Where Tab stops in the diagrams of a page."""


IN_FRAME = """() => {
    const here = document.activeElement.getBoundingClientRect();
    const frame = document.querySelector("[data-diagram=state]").getBoundingClientRect();
    const [x, y] = [(here.left + here.right) / 2, (here.top + here.bottom) / 2];
    return x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom;
}"""
"""Whether the middle of what has the focus is inside the diagram's frame."""


def said(page: Page) -> Locator:
    return page.locator("#said")


def announced(page: Page) -> list[str]:
    found: list[str] = page.evaluate("window.announced")
    return found


def in_diagram(page: Page) -> str:
    """The step, or the step of the number, that has the focus."""
    found: str = page.evaluate(
        """() => {
            const link = document.activeElement.closest("[data-pans] a");
            const step = link?.querySelector("[data-node]") ?? link?.closest("[data-badges]");
            return step?.dataset.node ?? step?.dataset.badges ?? "";
        }"""
    )
    return found


def test_an_age_that_ticks_is_not_said(signed_in: Page) -> None:
    order = waiting_order()
    went_on(order)
    signed_in.clock.install()
    opened(signed_in, f"/processes/{order.process_id}/?at=1")
    expect(signed_in.locator("#past")).to_contain_text("You are looking at the past.")
    signed_in.evaluate(COUNTS)
    before = signed_in.locator("#past .ago").text_content()

    signed_in.clock.run_for(10_000)

    expect(signed_in.locator("#past .ago")).not_to_have_text(str(before))
    assert announced(signed_in) == []


def test_going_to_the_past_is_said_once(signed_in: Page) -> None:
    order = waiting_order()
    went_on(order)
    opened(signed_in, order)
    signed_in.focus("#moment")
    signed_in.keyboard.press("Home")
    expect(said(signed_in)).to_have_text("You are looking at the past.")


def test_what_another_person_does_to_the_process_is_said(
    signed_in: Page, operator: User
) -> None:
    hire_for_long()
    process = waiting_order().process_id
    opened(signed_in, f"/processes/{process}/")
    signed_in.evaluate(COUNTS)

    pause(process, False, request=asked(actor=operator))
    expect(said(signed_in)).to_have_text("Paused")
    unpause(process, request=asked(actor=operator))
    expect(said(signed_in)).to_have_text("It goes on.")
    assert announced(signed_in) == ["Paused", "It goes on."]


def test_what_one_does_oneself_is_said_by_its_answer_alone(signed_in: Page) -> None:
    opened(signed_in, waiting_order())
    press(signed_in, "pause", "a holiday")
    expect(signed_in.locator("#unpause-button")).to_be_visible()
    expect(signed_in.locator("#flash")).to_contain_text("Paused")
    expect(said(signed_in)).to_have_text("")


def test_the_end_of_an_operation_on_many_is_said(
    signed_in: Page, operator: User
) -> None:
    failed(2)
    operation = begun(operator, {"status": "failed"}, 2, action="escalate")
    opened(signed_in, f"/operations/{operation.pk}/")
    worked_on(operation)
    done = BulkOperation.objects.get(pk=operation.pk)
    expect(said(signed_in)).to_have_text(str(done.get_status_display()))


def test_an_absent_server_is_said_once_and_its_return_once(signed_in: Page) -> None:
    hire_for_long()
    signed_in.clock.install()
    opened(signed_in, waiting_order())
    signed_in.evaluate(COUNTS)
    signed_in.context.set_offline(True)
    signed_in.evaluate("window.dispatchEvent(new Event('online'))")
    expect(said(signed_in)).to_contain_text("Stale since")
    for _ in range(6):  # it is tried again and again
        signed_in.clock.run_for(10_000)
    signed_in.context.set_offline(False)
    signed_in.clock.run_for(10_000)
    expect(said(signed_in)).to_have_text("Live")
    [away, back] = announced(signed_in)
    assert away.startswith("Stale since")
    assert back == "Live"


def test_the_focus_goes_to_what_replaces_a_button(signed_in: Page) -> None:
    opened(signed_in, waiting_order())
    signed_in.focus("#pause-button")
    signed_in.keyboard.press("Enter")
    dialog = signed_in.locator("#pause-dialog")
    dialog.locator("[name=reason]").fill("a holiday")
    submit(dialog).press("Enter")
    expect(signed_in.locator("#unpause-button")).to_be_focused()


def test_the_focus_goes_to_the_next_row(signed_in: Page, operator: User) -> None:
    """After an answer of one's own, and when another person's answer takes the row away."""
    for number in range(3):
        inquiry(f"T-{number}")
    opened(signed_in, "/decisions/")
    rows = signed_in.locator("#decisions tbody tr")
    expect(rows).to_have_count(3)
    keys = [row.get_attribute("id") for row in rows.all()]
    rows.nth(1).locator("[data-given=refuse]").focus()
    signed_in.keyboard.press("Enter")
    dialog = signed_in.locator("#decide-dialog")
    dialog.locator("[name=reason]").fill("too dear")
    submit(dialog).press("Enter")

    expect(rows).to_have_count(2)
    expect(signed_in.locator(f"#{keys[2]} [data-opens]").first).to_be_focused()
    last = ProcessInstance.objects.get(correlation_key="T-2")
    question = last.step_runs.get(kind="ask", finished_at=None)
    decide(last.pk, question.pk, "refuse", request=asked(actor=operator))
    expect(rows).to_have_count(1)
    expect(signed_in.locator(f"#{keys[0]} [data-opens]").first).to_be_focused()


def test_a_press_beside_everything_leaves_the_focus_nowhere(signed_in: Page) -> None:
    process = waiting_order().process_id
    opened(signed_in, f"/processes/{process}/")
    signed_in.focus("#pause-button")
    signed_in.locator("h1").click()
    went_on_later = signed_in.locator(".chip", has_text="paused").first
    pause(process, False, request=asked())
    expect(went_on_later).to_be_visible()
    assert signed_in.evaluate("document.activeElement.id") == "main"


def test_a_diagram_is_one_stop_and_arrow_keys_go_through_it(signed_in: Page) -> None:
    orders()
    opened(signed_in, "/definitions/order-listing/")
    links = signed_in.locator("[data-pans] a[href]")
    assert links.count() > 8
    assert signed_in.evaluate(STOPS) == ["a"]

    links.first.focus()
    came = {in_diagram(signed_in)}
    for key in ["ArrowDown"] * 5 + ["ArrowRight"] * 3 + ["ArrowLeft"] * 3:
        signed_in.keyboard.press(key)
        came.add(in_diagram(signed_in))
        assert signed_in.evaluate(STOPS) == ["a"]
    assert len(came) >= 4
    assert "" not in came
    step = in_diagram(signed_in)
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url(re.compile(f"step={step}"))


def test_what_has_the_focus_in_a_diagram_is_seen(signed_in: Page) -> None:
    """Also when the diagram was enlarged and moved away."""
    orders()
    opened(signed_in, "/definitions/order-listing/")
    for _ in range(4):
        signed_in.click("[data-zoom=in]")
    signed_in.locator("[data-pans] a[href]").first.focus()
    for key in ["ArrowDown"] * 6:
        signed_in.keyboard.press(key)
        signed_in.wait_for_function(IN_FRAME)


def test_a_line_of_a_diagram_is_heard_once_with_its_ends(signed_in: Page) -> None:
    orders()
    opened(signed_in, "/definitions/order-listing/")
    lines = signed_in.locator("[data-pans] .move")
    names = [line.locator("title").text_content() for line in lines.all()]
    assert all(re.match("From .+ to .+: .+", name or "") for name in names)
    assert all(line.get_attribute("role") == "img" for line in lines.all())
