"""S9.1 and S9.3 in a browser: events are looked for, each verdict is words, and a set of them is replayed once each."""

import re
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import Locator, Page, Request, Route, expect

from orchestrator import Permanent, send_event
from orchestrator.definition import Event
from orchestrator.models import BulkOperation, InboxEvent, OperatorAction
from orchestrator.testing import failing, run
from tests.apps.process_managers.desk import underway
from tests.apps.process_managers.fixtures import parcels
from tests.apps.process_managers.handlers import count_scan
from tests.apps.process_managers.messages import ParcelScanned
from tests.browser.conftest import live
from tests.services.bulk import a_moment, worked_on
from tests.services.site import live_site

__all__ = ["live_site", "parcels"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("parcels"),
]

DEPOT = "depot"
REASON = "the depot is open again"

ID = "td:nth-child(2) > div:nth-child(2) > code"
"""Where a row has the id that its sender gave the event."""


def send(event: Event, id: str, key: str = "", process: UUID | None = None) -> None:
    send_event(event, id=id, source=DEPOT, correlation_key=key, process_id=process)
    run()


def row(page: Page, id: str) -> Locator:
    """The row of an event, by the id that its sender gave it."""
    exactly = re.compile(f"^{re.escape(id)}$")
    return page.locator("#events tbody tr").filter(
        has=page.locator(ID, has_text=exactly)
    )


def found(page: Page, *ids: str) -> None:
    """The page has these events, the newest first."""
    expect(page.locator(f"#events tbody tr {ID}")).to_have_text(list(ids))


def looked_for(page: Page, **given: str) -> None:
    """Fill the form with this alone, and press Show."""
    page.goto("/events/")
    for name, value in given.items():
        field = page.locator(f"form.filters [name='{name}']")
        if name == "verdict":
            field.select_option(label=value)
        else:
            field.fill(value)
    page.click("form.filters button[type=submit]")
    page.wait_for_url("**/events/?*")


# Looked for


def test_s9_1_the_form_finds_events_by_id_type_key_and_day(signed_in: Page) -> None:
    underway("P-1")
    send(ParcelScanned("P-8", "east"), "scan 8", key="P-8")
    send(ParcelScanned("P-9", "west"), "scan 9", key="P-9")
    packed = InboxEvent.objects.get(type="ParcelPacked").event_id
    early = InboxEvent.objects.filter(event_id__in=["order P-1", packed])
    early.update(received_at=F("received_at") - timedelta(days=3))
    today = timezone.localdate()
    before = str(today - timedelta(days=1))

    for given, ids in (
        ({"q": "scan 8"}, ["scan 8"]),
        ({"type": "ParcelPacked"}, [packed]),
        ({"key": "P-1"}, [packed, "order P-1"]),
        ({"key": "P-9"}, ["scan 9"]),
        ({"from": before}, ["scan 9", "scan 8"]),
        ({"to": before}, [packed, "order P-1"]),
        ({"type": "ParcelScanned", "key": "P-8"}, ["scan 8"]),
        ({"q": "scan 8", "key": "P-1"}, []),
        ({"verdict": "No such process", "to": before}, []),
    ):
        looked_for(signed_in, **given)
        found(signed_in, *ids)
        if not ids:
            expect(signed_in.locator("#events .empty")).to_be_visible()
        for name, value in given.items():  # the form says what it shows
            if name != "verdict":
                field = signed_in.locator(f"form.filters [name='{name}']")
                expect(field).to_have_value(value)


# Replayed as a set


@pytest.fixture
def shut(signed_in: Page) -> Page:
    """The list of three scans that failed, opened through the form; another one is of another key."""
    parcel = underway("P-1").pk
    with failing(count_scan, Permanent("the depot is shut")):
        for number in range(3):
            send(ParcelScanned("P-1", f"place {number}"), f"{number}", process=parcel)
    send(ParcelScanned("P-9", "west"), "lost", key="P-9")
    a_moment()
    looked_for(signed_in, type="ParcelScanned", key="P-1", verdict="Failed")
    found(signed_in, "2", "1", "0")
    live(signed_in)
    return signed_in


def counted() -> int:
    """How often a scan of the parcel had its effect."""
    return Group.objects.filter(name__startswith="scan P-1 ").count()


def begin(page: Page) -> None:
    """Open the page that asks, from the list."""
    page.click("#begin-redeliver")
    expect(page.locator("#total")).to_have_text("3")
    page.fill("#begin textarea", REASON)
    page.click("#begin summary")
    page.fill("[name=samples]", "")


def pressed(page: Page) -> BulkOperation:
    """Press, and return the operation whose page that opens."""
    page.click("#begin-button")
    page.wait_for_url(re.compile(r"/operations/[0-9a-f-]{36}/"))
    live(page)
    return BulkOperation.objects.get(pk=page.url.rstrip("/").rpartition("/")[2])


def test_s9_3_the_set_that_is_shown_is_replayed_as_received(shut: Page) -> None:
    begin(shut)
    expect(shut.locator(".chips .filter")).to_have_text(
        ["Type: ParcelScanned", "Key: P-1", "Verdict: Failed"]
    )
    expect(shut.locator("#matching tbody code")).to_have_text(["0", "1", "2"])
    assert (counted(), OperatorAction.objects.count()) == (0, 0)

    worked_on(pressed(shut))

    expect(shut.locator("#settled")).to_have_text("3 of 3 have their verdict")
    expect(shut.locator(".head .chip")).to_have_text("completed")
    expect(shut.locator("#items tr[data-verdict=done]")).to_have_count(3)
    assert counted() == 3
    shut.goto("/events/?type=ParcelScanned&from=2020-01-01")
    found(shut, "lost", "2", "1", "0")
    for number in range(3):
        expect(row(shut, f"{number}")).to_contain_text("P-1 took it in On the way")
    expect(row(shut, "lost").locator("td").first).to_have_text("No such process")
    row(shut, "0").locator("a.subject").click()
    places = shut.locator("#history ins", has_text="place")
    expect(places).to_have_text(["place 2", "place 1", "place 0"])


def presses(request: Request) -> bool:
    return request.method == "POST"


def losing_the_answer(route: Route) -> None:
    if presses(route.request):
        route.fetch()
        route.abort("aborted")
    else:
        route.continue_()


def test_s9_3_pressed_again_after_a_lost_answer_it_is_one_operation(shut: Page) -> None:
    begin(shut)
    shut.route("**/operations/begin/**", losing_the_answer)
    with shut.expect_event("requestfailed", presses):
        shut.click("#begin-button")
    shut.unroute("**/operations/begin/**")
    first = BulkOperation.objects.get()

    assert pressed(shut) == first
    worked_on(first)

    expect(shut.locator("#items tr[data-verdict=done]")).to_have_count(3)
    assert counted() == 3
    assert OperatorAction.objects.filter(action="redeliver").count() == 3
