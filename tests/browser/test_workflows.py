"""A workflow in a browser: it walks to its end live, a person decides, and large ones are drawn without waiting."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import Page, expect

from orchestrator import start_process
from orchestrator.engine import operations
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import ActionRequest
from orchestrator.models import ProcessInstance
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry, Lattice
from tests.browser.conftest import live
from tests.browser.test_pages import complaints, found_wrong, readable
from tests.services.site import live_site
from tests.services.sizes import size
from tests.services.workers import Workers

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("helpdesk"),
]


def started(ticket: str = "T-1", **more: Any) -> UUID:
    process = start_process(Inquiry, Inquiry.Input(ticket, **more)).process_id
    assert process is not None
    return UUID(str(process))


def hold(*places: str) -> None:
    """Let the reading of inquiries stand still at these places."""
    for place in places:
        Group.objects.create(name=place)


def let_go(*places: str) -> None:
    Group.objects.filter(name__in=places).delete()


def opened(page: Page, process: UUID, query: str = "") -> None:
    page.goto(f"/processes/{process}/{query}")
    live(page)
    page.evaluate("window.loadedOnce = true")


def step(page: Page, name: str, status: str = "") -> None:
    expect(page.locator(f"#n_{name}{status}")).to_be_visible()


def decide(page: Page, choice: str) -> None:
    page.click(f"[data-opens=decide-dialog][data-given={choice}]")
    page.fill("#decide-dialog textarea", "the customer is right")
    page.click("#decide-dialog .acts button:last-child")


def test_a_workflow_walks_live_to_its_end_and_a_person_decides(
    workers: Workers, signed_in: Page
) -> None:
    hold("part 1", "page 8")
    process = started(pages=8, held=True)
    opened(signed_in, process)

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
    assert signed_in.evaluate("window.loadedOnce") is True


def test_progress_moves_the_bar_without_a_reload(
    workers: Workers, signed_in: Page
) -> None:
    hold("part 1", "part 5")
    opened(signed_in, started(held=True))
    done = "Number(document.querySelector('#n_read_text .bar .part').getAttribute('width'))"
    signed_in.wait_for_function(f"() => {done} > 0")
    first = signed_in.evaluate(f"() => {done}")
    let_go("part 1")

    signed_in.wait_for_function(f"() => {done} > {first}")

    let_go("part 5")
    assert signed_in.evaluate("window.loadedOnce") is True


def test_a_question_is_answered_from_the_list_of_decisions(
    workers: Workers, signed_in: Page
) -> None:
    process = started()
    signed_in.goto("/decisions/")
    live(signed_in)
    expect(signed_in.locator("#decisions tbody tr")).to_have_count(1)

    decide(signed_in, "refuse")

    expect(signed_in.locator("#decisions .empty")).to_be_visible()
    instance = ProcessInstance.objects.get(pk=process)
    assert instance.status in ("running", "completed")


def test_a_step_is_skipped_with_a_result_that_was_refused_at_first(
    workers: Workers, signed_in: Page
) -> None:
    opened(signed_in, started(trouble="reply"))
    step(signed_in, "verdict", ".is-waiting")
    decide(signed_in, "accept")
    step(signed_in, "reply", ".is-failed")
    signed_in.click("#now [data-opens=skip-dialog]")
    signed_in.fill("#skip-dialog textarea.json", "17")
    signed_in.fill("#skip-dialog [name=reason]", "sent by hand")
    signed_in.click("#skip-dialog .acts button:last-child")
    expect(signed_in.locator("#skip-dialog .result")).to_contain_text(
        "this is no result of Reply"
    )

    signed_in.fill("#skip-dialog textarea.json", '"by hand"')
    signed_in.click("#skip-dialog .acts button:last-child")

    step(signed_in, "reply", ".is-skipped")
    step(signed_in, "payment", ".is-waiting.is-current")


@pytest.mark.once
def test_choosing_a_step_narrows_the_table(signed_in: Page) -> None:
    process = started(pages=5)
    drain()
    opened(signed_in, process)

    signed_in.click("#n_read_page")

    signed_in.wait_for_url("**/?step=read_page")
    expect(signed_in.locator("#runs-rows tbody tr")).to_have_count(6)


@pytest.mark.once
def test_a_large_workflow_is_drawn_while_its_page_is_open(signed_in: Page) -> None:
    process = start_process(Lattice, Lattice.Input(12, 20)).process_id
    opened(signed_in, process)

    expect(signed_in.locator("#drawing .step")).to_have_count(240)

    expect(signed_in.locator("[data-undrawn]")).to_have_count(0)
    # It opens where its words can be read, and goes on from there.
    scale = "+document.querySelector('.picture').style.transform.match(/scale\\(([^)]+)/)[1]"
    signed_in.wait_for_function(f"() => {scale} > 1")
    first = signed_in.evaluate(scale)
    signed_in.click("[data-zoom=in]")
    signed_in.wait_for_function(f"before => {scale} > before", arg=first)
    assert signed_in.evaluate("window.loadedOnce") is True


# What must hold on every page


def addresses() -> list[str]:
    """One of everything that pages show of workflows."""
    asking, torn = started(), started("T-2", pages=5, trouble="page")
    large = start_process(Lattice, Lattice.Input(size(12, full=60), 20)).process_id
    drain()
    return [
        "/",
        "/waits/",
        "/decisions/",
        "/definitions/helpdesk-inquiry/",
        "/definitions/helpdesk-inquiry/?overlay=median",
        "/definitions/helpdesk-lattice/",
        f"/processes/{asking}/",
        f"/processes/{torn}/?step=read_page",
        f"/processes/{torn}/?search=torn",
        f"/processes/{large}/",
        f"/processes/{torn}/repair/?step=read_page",
    ]


@pytest.mark.once
@pytest.mark.full_size("11 pages, one of 1,200 steps", seconds=240)
def test_everybody_can_read_every_page_at_every_width(checked: Page) -> None:
    assert found_wrong(checked, addresses()) == {}


@pytest.mark.once
def test_every_label_of_a_diagram_can_be_read(checked: Page) -> None:
    checked.goto(f"/processes/{started(trouble='text')}/")
    drain()
    live(checked)

    readable(checked)


@pytest.mark.once
@pytest.mark.parametrize("button", ["restart", "cancel"])
def test_axe_finds_nothing_in_an_open_dialog(
    checked: Page, button: str, operator: User
) -> None:
    process = started()
    drain()
    if button == "restart":  # for one that has ended
        operations.cancel(process, request=ActionRequest(operator, uuid4(), "tried"))
        drain()
    checked.goto(f"/processes/{process}/")
    live(checked)
    checked.click(f"#{button}-button")

    assert complaints(checked) == []
