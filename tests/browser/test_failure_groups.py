"""S5, the failure inbox, in a browser: a group opens, grows, is mended and leaves, and stays one when lines move."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination, RequestExternalCreation
from examples.order_listing.orders import place_order
from orchestrator import Answer, CommandContext, Permanent
from orchestrator.engine.drain import drain
from orchestrator.models import BulkOperation, Incident
from orchestrator.testing import replaced
from tests.browser.conftest import IN_PROCESS_TOO, fits, live
from tests.browser.samples import HARMFUL
from tests.services.bulk import worked_on

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def group(signed_in: Page) -> Page:
    """The page of the only group, opened from the first page."""
    fail(3)
    signed_in.goto("/")
    signed_in.click("#nav a[href='/failures/']")
    signed_in.click("#failures a.subject")
    live(signed_in)
    return signed_in


def fail(number: int) -> None:
    for one in range(number):
        place_order(Destination.BOTH, f"{one} MWh {HARMFUL[one]}")
    drain()


def test_s5_1_a_group_opens_and_grows_while_it_is_looked_at(group: Page) -> None:
    chip = group.locator("#failure-group .chip.c-failed").first
    expect(chip).to_have_text("3 failed")
    expect(group.locator("#members tbody tr")).to_have_count(3)

    fail(1)

    expect(chip).to_have_text("4 failed")
    expect(group.locator("#members tbody tr")).to_have_count(4)


def test_nothing_scrolls_sideways(group: Page) -> None:
    for address in ("/failures/", "/failures/?show=resolved", group.url):
        group.goto(address)
        fits(group)


def test_s5_3_a_group_is_marked_as_handled_and_comes_back(group: Page) -> None:
    group.click("#mark_handled-button")
    group.fill("#mark_handled-dialog textarea", "the exchange is down until noon")
    group.fill("#mark_handled-days", "2")
    group.click("#mark_handled-dialog button[type=submit]")
    header = group.locator("#failure-group .header")
    expect(header).to_contain_text("the exchange is down until noon")
    expect(group.locator("#unmark_handled-button")).to_be_visible()

    group.goto("/failures/")
    expect(group.locator("#failures tbody tr")).to_have_count(0)
    group.click("#failures a[href*='show=handled']")
    expect(group.locator("#failures tbody tr")).to_have_count(1)
    group.goto("/failures/")
    live(group)
    fail(1)

    expect(group.locator("#failures tbody tr")).to_have_count(1)
    expect(group.locator("#failures tbody tr")).to_contain_text("is back")


@IN_PROCESS_TOO
def test_s5_2_a_sample_has_its_trace_its_payload_and_what_differs(group: Page) -> None:
    compared = group.locator("#compared")
    expect(compared).to_contain_text("3 different ones")
    expect(compared.locator("dt", has_text="destination")).to_be_visible()
    newest = Incident.objects.open().select_related("instance").latest("pk")
    sample = group.locator(f"#incident-{newest.pk}")
    trace, payload = sample.locator("details").all()
    expect(trace.locator("pre")).to_be_hidden()

    trace.locator("summary").click()
    payload.locator("summary").click()

    expect(trace.locator("pre")).to_contain_text(newest.detail.splitlines()[-1])
    expect(payload.locator("pre")).to_contain_text(newest.instance.data["order_id"])
    sample.locator("a.subject").first.click()
    expect(group).to_have_url(re.compile(f"/processes/{newest.instance_id}/$"))


def taken(command: RequestExternalCreation, context: CommandContext) -> Answer:
    """The exchange is back."""
    return Answer("HTTP 202")


def test_s5_4_a_group_that_was_solved_leaves_and_is_found_with_what_resolved_it(
    group: Page,
) -> None:
    cause = Incident.objects.open().latest("pk").fingerprint
    inbox = group.context.new_page()
    inbox.goto("/failures/")
    live(inbox)
    expect(inbox.locator("#failures tbody tr")).to_have_count(1)
    group.click("#failure-group a[href^='/operations/begin/']")
    group.fill("#begin textarea", "the exchange is back")
    group.click("#begin-button")
    group.wait_for_url(re.compile(r"/operations/[0-9a-f-]{36}/"))
    operation = BulkOperation.objects.get()

    with replaced("RequestExternalCreation", taken):
        worked_on(operation)

    assert operation.done == 3
    expect(inbox.locator("#failures .empty")).to_contain_text("Nothing has failed")
    inbox.click("#failures a[href*='show=resolved']")
    row = inbox.locator(f"#group-{cause}")
    expect(row.locator("td").nth(2)).to_have_text("3")
    row.locator(f"a[href='/operations/{operation.pk}/']").click()
    expect(inbox.locator("#settled")).to_have_text("3 of 3 have their verdict")
    inbox.goto(f"/failures/{cause}/")
    expect(inbox.locator("#failure-group .empty")).to_contain_text("Resolved by")


CALL = """
def call(command):
    raise Permanent("the exchange knows no such market")
"""


def deployed(line: int) -> Callable[..., Any]:
    """The code of a handler, as a file has it in which it begins at this line."""
    module: dict[str, Any] = {"__name__": "trading.calls", "Permanent": Permanent}
    source = "\n" * (line - 2) + CALL
    exec(compile(source, "/srv/trading/calls.py", "exec"), module)  # noqa: S102  our own
    call = module["call"]
    assert call.__code__.co_firstlineno == line

    def handle(command: RequestExternalCreation, context: CommandContext) -> None:
        call(command)

    return handle


def fail_in(code: Callable[..., Any], number: int) -> None:
    """Have orders fail for good where this code runs."""
    with replaced("RequestExternalCreation", code):
        for one in range(number):
            place_order(Destination.BOTH, f"{one} MWh")
        drain()


@IN_PROCESS_TOO
def test_s5_5_a_group_stays_one_when_a_deploy_moves_its_lines(signed_in: Page) -> None:
    fail_in(deployed(10), 2)
    signed_in.goto("/failures/")
    signed_in.click("#failures a.subject")
    live(signed_in)
    chip = signed_in.locator("#failure-group .chip.c-failed").first
    expect(chip).to_have_text("2 failed")
    expect(signed_in.locator(".facts").first).to_contain_text("trading.calls.call")

    fail_in(deployed(250), 1)

    expect(chip).to_have_text("3 failed")
    lines = [one.detail for one in Incident.objects.open()]
    assert sum("line 11," in one for one in lines) == 2
    assert sum("line 251," in one for one in lines) == 1
    signed_in.goto("/failures/")
    expect(signed_in.locator("#failures tbody tr")).to_have_count(1)
