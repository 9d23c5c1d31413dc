"""A workflow in a browser: it walks to its end live, a person decides, and large ones are drawn without waiting."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from playwright.sync_api import Page, expect

from orchestrator import start_process
from orchestrator.models import ProcessInstance
from orchestrator.testing import run
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry, Lattice
from tests.browser.pressing import asked, opened, press, stayed, submit
from tests.browser.test_pages import complaints, found_wrong
from tests.services.site import live_site
from tests.services.sizes import size
from tests.services.workers import Workers

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("helpdesk"),
]


def started(ticket: str = "T-1", **more: Any) -> str:
    receipt = start_process(Inquiry, Inquiry.Input(ticket, **more))
    return f"/processes/{receipt.process_id}/"


def hold(*places: str) -> None:
    """Let the reading of inquiries stand still at these places."""
    for place in places:
        Group.objects.create(name=place)


def let_go(*places: str) -> None:
    Group.objects.filter(name__in=places).delete()


def step(page: Page, name: str, status: str = "") -> None:
    expect(page.locator(f"#n_{name}{status}")).to_be_visible()


def decide(page: Page, choice: str) -> None:
    button = f"[data-opens=decide-dialog][data-given={choice}]"
    press(page, "decide", "the customer is right", button)


def test_a_workflow_walks_live_to_its_end_and_a_person_decides(
    workers: Workers, signed_in: Page
) -> None:
    hold("part 1", "page 8")
    opened(signed_in, started(pages=8, held=True))

    # Both branches of the fork at once: the text reports how far it is, the map counts its pages.
    step(signed_in, "read_text", ".is-running.is-current")
    step(signed_in, "read_page", ".is-running.is-current")
    bar = signed_in.locator("#n_read_text .bar.is-shown")
    expect(bar).to_be_visible()
    expect(signed_in.locator("#now progress").first).to_be_visible()
    let_go("part 1", "page 8")
    expect(signed_in.locator("#n_read_page .badge.note text")).to_have_text("8/8")
    step(signed_in, "verdict", ".is-waiting.is-current")
    expect(signed_in.locator("#n_draft .badge.count text")).to_have_text(
        "2\N{MULTIPLICATION SIGN}"
    )

    decide(signed_in, "refuse")

    expect(signed_in.locator("#flash")).to_contain_text("Decided")
    step(signed_in, "escalate", ".is-done")
    step(signed_in, "reply", ".is-not_taken")
    expect(signed_in.locator(".head .chip").first).to_have_text("Completed")
    expect(signed_in.locator("#outcome")).to_contain_text("escalated")
    stayed(signed_in)


def test_progress_moves_the_bar_by_itself(workers: Workers, signed_in: Page) -> None:
    hold("part 1", "part 5")
    opened(signed_in, started(held=True))
    done = "Number(document.querySelector('#n_read_text .bar .part').getAttribute('width'))"
    signed_in.wait_for_function(f"() => {done} > 0")
    first = signed_in.evaluate(f"() => {done}")
    let_go("part 1")

    signed_in.wait_for_function(f"() => {done} > {first}")

    let_go("part 5")
    stayed(signed_in)


def test_a_question_is_answered_from_the_list_of_decisions(
    workers: Workers, signed_in: Page
) -> None:
    started()
    opened(signed_in, "/decisions/")
    expect(signed_in.locator("#decisions tbody tr")).to_have_count(1)

    decide(signed_in, "refuse")

    expect(signed_in.locator("#decisions .empty")).to_be_visible()
    assert ProcessInstance.objects.get().status in ("running", "completed")


def test_a_step_is_skipped_with_a_result_that_was_refused_at_first(
    workers: Workers, signed_in: Page
) -> None:
    opened(signed_in, started(trouble="reply"))
    step(signed_in, "verdict", ".is-waiting")
    decide(signed_in, "accept")
    step(signed_in, "reply", ".is-failed")
    button = "#now [data-opens=skip-dialog]"
    dialog = asked(signed_in, "skip", "sent by hand", button)
    dialog.locator("textarea.json").fill("17")
    submit(dialog).click()
    refusal = dialog.locator(".result")
    expect(refusal).to_contain_text("this is no result of Reply")

    dialog.locator("textarea.json").fill('"by hand"')
    submit(dialog).click()

    step(signed_in, "reply", ".is-skipped")
    step(signed_in, "payment", ".is-waiting.is-current")


@pytest.mark.once
def test_choosing_a_step_narrows_the_table(signed_in: Page) -> None:
    process = started(pages=5)
    run()
    opened(signed_in, process)

    signed_in.click("#n_read_page")

    signed_in.wait_for_url("**/?step=read_page")
    expect(signed_in.locator("#runs-rows tbody tr")).to_have_count(6)


@pytest.mark.once
def test_a_large_workflow_is_drawn_while_its_page_is_open(signed_in: Page) -> None:
    opened(signed_in, start_process(Lattice, Lattice.Input(12, 20)))

    expect(signed_in.locator("#drawing .step")).to_have_count(240)

    expect(signed_in.locator("[data-undrawn]")).to_have_count(0)
    # It opens where its words can be read, and goes on from there.
    scale = "+document.querySelector('.picture').style.transform.match(/scale\\(([^)]+)/)[1]"
    signed_in.wait_for_function(f"() => {scale} > 1")
    first = signed_in.evaluate(scale)
    signed_in.click("[data-zoom=in]")
    signed_in.wait_for_function(f"before => {scale} > before", arg=first)
    stayed(signed_in)


# What must hold on every page


def addresses() -> list[str]:
    """One of everything that pages show of workflows."""
    asking, torn = started(), started("T-2", pages=5, trouble="page")
    unread = started("T-3", trouble="text")
    large = start_process(Lattice, Lattice.Input(size(6, full=60), 20)).process_id
    run()
    return [
        "/",
        "/waits/",
        "/decisions/",
        "/definitions/helpdesk-inquiry/",
        "/definitions/helpdesk-inquiry/?overlay=median",
        "/definitions/helpdesk-lattice/",
        asking,
        unread,
        f"{torn}?step=read_page",
        f"{torn}?search=torn",
        f"/processes/{large}/",
        f"{torn}repair/?step=read_page",
    ]


@pytest.mark.once
@pytest.mark.full_size("12 pages, one of 1,200 steps", seconds=240)
def test_everybody_can_read_every_page_at_every_width(checked: Page) -> None:
    assert found_wrong(checked, addresses()) == {}


@pytest.mark.once
def test_axe_finds_nothing_in_the_dialogs_of_one_that_goes_on_and_of_one_that_has_ended(
    checked: Page,
) -> None:
    address = started()
    run()
    opened(checked, address)
    dialog = asked(checked, "cancel", "tried")
    assert complaints(checked) == []
    submit(dialog).click()
    expect(dialog).to_be_hidden()
    run()

    opened(checked, address)
    asked(checked, "restart")

    assert complaints(checked) == []
