"""What must hold on every page: readable by everybody, at every width, and nothing in the data is taken for markup."""

import json
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from examples.order_listing.messages import ExternalOrderRejected
from examples.order_listing.models import Order
from orchestrator import send_event
from orchestrator.models import BulkOperation, Incident
from orchestrator.testing import run
from orchestrator.testing.clock import move_times_back
from tests.browser.conftest import WIDTHS, too_wide
from tests.browser.pressing import opened
from tests.browser.samples import HARMFUL, orders
from tests.services.bulk import begun, frozen
from tests.services.sizes import FULL

AXE = Path(__file__).parent / "vendor/axe-core-4.14.1/axe.min.js"

WITH_TARGETS = '{rules: {"target-size": {enabled: true}}}'
"""It also looks for what is too small, and too near to others, to be met by a finger (24 pixels)."""

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


@pytest.fixture
def placed(transactional_db: None, operator: User) -> dict[str, Order]:
    placed = orders()
    frozen(begun(operator, {"status": "failed"}, 1))
    return placed


def addresses(placed: dict[str, Order]) -> list[str]:
    return [
        "/",
        "/definitions/order-listing/",
        "/definitions/order-listing/?step=AwaitingExternalCreation",
        "/definitions/order-listing/?overlay=p95&window=day",
        "/definitions/order-listing/?overlay=failures&step=Completed&doing=left-hour",
        "/definitions/order-listing/versions/",
        "/definitions/order-listing/versions/compare/",
        "/definitions/order-listing/versions/compare/?from=2&to=1&preview=1",
        "/processes/",
        "/processes/?status=paused&q=nothing",
        "/processes/?where=order_id exists&columns=summary,step,since,started,changed,owner",
        "/processes/?where=order_id >&add_value=1",
        *(f"/processes/{order.process_id}/" for order in placed.values()),
        f"/processes/{placed['completed'].process_id}/?at=1",
        f"/processes/{placed['completed'].process_id}/messages/",
        f"/processes/{placed['early'].process_id}/messages/?key=1",
        f"/processes/{placed['completed'].process_id}/repair/",
        f"/processes/{placed['failed'].process_id}/repair/",
        f"/processes/{placed['failed'].process_id}/secrets/",
        "/waits/",
        "/stalled/",
        "/waits/?kind=decision",
        "/waits/?kind=event",
        f"/processes/{placed['completed'].process_id}/?at=1&beside=now",
        "/events/?tab=parked",
        "/events/?tab=rejected",
        "/audit/",
        "/audit/?when=today&action=cancel",
        "/failures/",
        "/failures/?show=resolved",
        "/tokens/",
        f"/failures/{Incident.objects.latest('pk').fingerprint}/",
        "/operations/",
        "/operations/begin/?action=assign&status=live",
        "/operations/begin/",
        "/operations/begin/?of=events&from=2020-01-01&action=discard",
        "/events/?from=2020-01-01&verdict=parked",
        "/events/?from=2020-01-01&q=lost",
        "/events/send/",
        "/events/send/?type=ExternalOrderRejected",
        "/events/send/?type=Nonsense",
        f"/operations/{BulkOperation.objects.latest('pk').pk}/",
        "/nothing-here/",
    ]


def complaints(page: Page) -> list[str]:
    """What axe finds on the page, one line each."""
    page.evaluate(AXE.read_text())
    found = page.evaluate(f"async () => (await axe.run({WITH_TARGETS})).violations")
    return [
        f"{violation['id']}: {node['html'][:200]} {json.dumps(node['any'][:1])[:300]}"
        for violation in found
        for node in violation["nodes"]
    ]


def found_wrong(page: Page, places: list[str]) -> dict[str, list[str]]:
    """Walk the pages; return what axe says of each, which labels are faint, and at which widths it does not fit.

    At full size each is walked in both themes and both languages, usually in one of each.
    """
    found = {}
    ways: list[tuple[Any, str]] = [*product(("light", "dark"), ("en", "ja"))]
    for number, (address, (theme, language)) in enumerate(product(places, ways)):
        if not FULL and number % 4 != number // 4 % 4:
            continue
        page.emulate_media(color_scheme=theme)
        page.set_extra_http_headers({"Accept-Language": language})
        width = WIDTHS[number % len(WIDTHS)]
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(address)
        assert page.locator("html").get_attribute("lang") == language
        if wrong := complaints(page) + too_wide(page) + faint(page):
            found[f"{address} {theme} {language} {width}"] = wrong
    return found


@pytest.mark.full_size("all pages, both themes and languages", seconds=300)
def test_everybody_can_read_every_page_at_every_width_and_no_text_is_taken_for_markup(
    checked: Page, operator: User
) -> None:
    alarms: list[str] = []
    checked.on("dialog", lambda dialog: alarms.append(dialog.message))
    checked.on("console", lambda line: alarms.append(line.text))
    checked.on("pageerror", lambda error: alarms.append(str(error)))
    texts = [orders(text, text[:30] if text.isprintable() else "") for text in HARMFUL]
    frozen(begun(operator, {"status": "failed"}, len(texts)))

    assert found_wrong(checked, addresses(texts[0])) == {}

    for some in texts[1:]:
        checked.goto(f"/processes/{some['completed'].process_id}/")
    opened(checked, "/processes/")
    assert [alarm for alarm in alarms if "404" not in alarm] == []
    assert checked.locator("#planted").count() == 0
    assert HARMFUL[0] in checked.inner_text("#rows")


def test_no_word_of_why_nothing_took_an_event_is_broken(
    signed_in: Page, placed: dict[str, Order]
) -> None:
    process = placed["completed"].process_id
    send_event(ExternalOrderRejected("late"), id="E-1", process_id=process)
    run()
    signed_in.goto("/events/")

    for width in WIDTHS:
        signed_in.set_viewport_size({"width": width, "height": 900})
        reason = signed_in.locator("#events td:nth-child(3)").first
        expect(reason).to_contain_text("ExternalOrderRejected came after the process")
        assert signed_in.evaluate(BROKEN_WORDS) == []


def test_axe_accepts_an_open_dialog(checked: Page, placed: dict[str, Order]) -> None:
    opened(checked, f"/processes/{placed['failed'].process_id}/")
    checked.click("#retry-button")

    assert complaints(checked) == []


def test_axe_finds_nothing_on_the_sign_in_page(checked: Page) -> None:
    checked.context.clear_cookies()
    checked.goto("/sign-in/")
    checked.fill("#id_username", "nobody")
    checked.fill("#id_password", "wrong")
    checked.click("button.primary")
    checked.wait_for_selector("#wrong")

    assert complaints(checked) == []


BROKEN_WORDS = """() => [...document.querySelectorAll("#events td:nth-child(3)")].flatMap(cell => {
    const text = cell.firstChild, range = document.createRange();
    return [...text.data.matchAll(/\\S+/g)].filter(word => {
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }).map(word => word[0]);
})"""


def test_on_a_phone_now_comes_before_the_diagram_and_the_history(
    signed_in: Page, placed: dict[str, Order]
) -> None:
    signed_in.set_viewport_size({"width": 390, "height": 844})
    signed_in.goto(f"/processes/{placed['failed'].process_id}/")

    tops = [
        signed_in.locator(part).bounding_box()
        for part in ("#retry-button", "#now", ".of-diagram", "#history")
    ]

    heights = [box["y"] for box in tops if box]
    assert len(heights) == 4
    assert heights == sorted(heights)


FAINT = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const channels = (colour) => {
        canvas.fillStyle = colour; // however it is written
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => {
            const part = value / 255;
            return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
    };
    const light = (colour) => channels(colour).reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
    const contrast = (one, other) => {
        const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    };
    const paper = getComputedStyle(document.querySelector(".diagram")).backgroundColor;
    return [...document.querySelectorAll(".picture .move > text, .picture .step > text")]
        .map((text) => {
            const node = text.closest(".step")?.querySelector("path");
            const ground = node ? getComputedStyle(node).fill : paper;
            return [text.textContent, contrast(getComputedStyle(text).fill, ground)];
        })
        .filter(([, ratio]) => ratio < 4.5);
}"""


def faint(page: Page) -> list[str]:
    """The labels of the page's diagrams that cannot be read, in either theme."""
    found = []
    if page.locator(".picture .move > text").count():
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            found += [f"{theme}: {label}" for label in page.evaluate(FAINT)]
    return found


def test_a_list_of_many_columns_fits_however_old_its_rows_are(signed_in: Page) -> None:
    orders()
    for passed in (timedelta(minutes=12), timedelta(days=20)):
        move_times_back(passed)
        signed_in.goto("/processes/?columns=summary,step,since,started,changed,owner")
        assert too_wide(signed_in, [1024]) == [], passed
