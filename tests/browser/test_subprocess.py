"""S3 in a browser: a sub-process is opened in place, live, beside a picture of its parent that stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Page, Request, expect

from monitoring.live.watchers import ASK_EVERY
from orchestrator import send_event, start_process
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.testing import run
from tests.apps.nested_processes.processes import (
    Clearing,
    Cupboard,
    Emptied,
    House,
    HouseClearing,
)
from tests.browser.conftest import fits
from tests.browser.pressing import opened, stayed
from tests.browser.test_pages import complaints
from tests.services.crews import knowing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

PICTURE = "[data-diagram=state] .picture"
TRANSFORM = f"document.querySelector('{PICTURE}').style.transform"
OWN_TRANSFORM = "document.querySelector('#sub .picture').style.transform"


rooms = knowing(Cupboard, Clearing, HouseClearing)


@pytest.fixture
def signed_in(signed_in: Page) -> Iterator[Page]:
    """The page, which asks for nothing any more when the tables are emptied."""
    asked: set[Request] = set()

    def begun(request: Request) -> None:
        asked.add(request)

    def over(request: Request) -> None:
        asked.discard(request)

    signed_in.on("request", begun)
    signed_in.on("requestfinished", over)
    signed_in.on("requestfailed", over)
    yield signed_in
    signed_in.route("**/*since=*", lambda route: route.abort())
    for _ in range(500):
        if asked:
            signed_in.wait_for_timeout(20)
    signed_in.goto("about:blank")


@pytest.fixture
def house(transactional_db: None) -> ProcessInstance:
    """Three rooms, each with a cupboard that waits for somebody."""
    receipt = start_process(HouseClearing, House(["hall", "study", "attic"], "attic"))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def room_of(house: ProcessInstance, number: int) -> ProcessInstance:
    return ProcessInstance.objects.get(
        pk=StepRun.objects.values_list("child").get(instance=house, item=number)[0]
    )


def emptied(room: ProcessInstance) -> None:
    """Somebody empties the cupboard of a room."""
    cupboard = ProcessInstance.objects.get(parent=room)
    send_event(Emptied("ann"), id=str(uuid4()), process_id=cupboard.pk)
    run()


def opens(page: Page, room: ProcessInstance) -> None:
    page.locator(f'#runs-rows a[data-sub="{room.pk}"]').click()
    expect(page.locator("#sub")).to_have_attribute("data-asked", str(room.pk))


def test_s3_a_sub_process_opens_in_place_goes_on_live_and_the_parent_stays_where_it_is(
    signed_in: Page, house: ProcessInstance
) -> None:
    room = room_of(house, 0)
    opened(signed_in, f"/processes/{house.pk}/?step=clearing")
    signed_in.locator(".of-diagram [data-zoom=in]").first.click()
    signed_in.wait_for_function(f"() => {TRANSFORM}.includes('scale(1.')")
    before = signed_in.evaluate(TRANSFORM)

    opens(signed_in, room)
    part = signed_in.locator("#sub")
    expect(part.locator("#sub-title")).to_be_focused()
    waiting = part.locator("[data-node=cupboard].is-current")
    expect(waiting).to_be_visible()
    expect(part.locator("#sub-about .open-steps")).to_contain_text("Cupboard")
    assert signed_in.url.endswith(f"?step=clearing&sub={room.pk}")
    signed_in.wait_for_function(f"() => {OWN_TRANSFORM}.includes('scale(')")
    at_first = signed_in.evaluate(OWN_TRANSFORM)
    part.locator("[data-zoom=in]").click()
    # The picture takes the new zoom with its next frame.
    signed_in.wait_for_function(f"before => {OWN_TRANSFORM} !== before", arg=at_first)
    own = signed_in.evaluate(OWN_TRANSFORM)

    emptied(room)

    expect(part.locator("[data-node=leave].is-done")).to_be_visible()
    expect(part.locator("#sub-about .chip").first).to_have_text("Completed")
    assert signed_in.evaluate(OWN_TRANSFORM) == own
    assert signed_in.evaluate(TRANSFORM) == before
    stayed(signed_in)


def test_s3_a_hint_of_the_sub_process_itself_moves_its_highlight(
    signed_in: Page, house: ProcessInstance
) -> None:
    room = room_of(house, 1)
    opened(signed_in, f"/processes/{house.pk}/?sub={room.pk}")
    expect(signed_in.locator("#sub [data-node=cupboard].is-current")).to_be_visible()
    # Until then whoever commits may go by an older answer about which pages are open.
    signed_in.wait_for_timeout(1_000 * ASK_EVERY + 100)

    emptied(room)

    told = f"""() => performance.getEntriesByName('highlight')
        .some(mark => mark.detail.id === '{room.pk}')"""
    signed_in.wait_for_function(told)
    expect(signed_in.locator("#sub [data-node=leave].is-done")).to_be_visible()


def test_s3_back_closes_it_and_one_is_open_at_a_time(
    signed_in: Page, house: ProcessInstance
) -> None:
    first, second = room_of(house, 0), room_of(house, 1)
    opened(signed_in, f"/processes/{house.pk}/?step=clearing")
    opens(signed_in, first)
    opens(signed_in, second)
    expect(signed_in.locator("[data-diagram=state-sub]")).to_have_count(1)

    signed_in.go_back()
    expect(signed_in.locator("#sub")).to_have_attribute("data-asked", str(first.pk))
    signed_in.go_back()
    expect(signed_in.locator("#sub section")).to_have_count(0)
    signed_in.go_forward()
    expect(signed_in.locator("#sub")).to_have_attribute("data-asked", str(first.pk))

    signed_in.locator("#sub header a", has_text="Close").click()
    expect(signed_in.locator("#sub section")).to_have_count(0)
    assert signed_in.url.endswith("?step=clearing")
    expect(signed_in.locator(f'[data-sub="{first.pk}"]').first).to_be_focused()


def test_s3_by_keys_alone_into_a_sub_process_of_a_sub_process(
    signed_in: Page, house: ProcessInstance
) -> None:
    room = room_of(house, 2)
    cupboard = ProcessInstance.objects.get(parent=room)
    opened(signed_in, f"/processes/{house.pk}/?step=clearing")
    signed_in.locator(f'#runs-rows a[data-sub="{room.pk}"]').focus()
    signed_in.keyboard.press("Enter")
    expect(signed_in.locator("#sub-title")).to_be_focused()
    for _ in range(12):
        signed_in.keyboard.press("Tab")
        if signed_in.evaluate("document.activeElement.dataset.sub") == str(cupboard.pk):
            break
    signed_in.keyboard.press("Enter")

    expect(signed_in.locator("#sub")).to_have_attribute("data-asked", str(cupboard.pk))
    about = signed_in.locator("#sub-about")
    trouble = about.locator(".notice.bad")
    expect(trouble).to_contain_text("the cupboard of attic is locked")
    expect(about.locator(".above a")).to_have_text(str(room))
    before = signed_in.evaluate(OWN_TRANSFORM)
    signed_in.locator("#sub .diagram").focus()
    signed_in.keyboard.press("ArrowLeft")
    signed_in.wait_for_function(f"before => {OWN_TRANSFORM} !== before", arg=before)


def test_s3_it_goes_with_the_past_that_is_looked_at(
    signed_in: Page, house: ProcessInstance
) -> None:
    room = room_of(house, 0)
    emptied(room)
    opened(signed_in, f"/processes/{house.pk}/?sub={room.pk}")
    expect(signed_in.locator("#sub [data-node=leave].is-done")).to_be_visible()

    signed_in.focus("#moment")
    signed_in.keyboard.press("Home")
    about = signed_in.locator("#sub-about")
    expect(about).to_contain_text("It had not been started yet.")
    expect(signed_in.locator("#sub .diagram")).to_have_count(0)
    signed_in.keyboard.press("End")
    expect(signed_in.locator("#sub [data-node=leave].is-done")).to_be_visible()
    assert signed_in.url.endswith(f"?sub={room.pk}")


def test_s3_without_scripts_it_opens_and_closes_too(
    without_scripts: Page, house: ProcessInstance
) -> None:
    room, page = room_of(house, 0), without_scripts
    page.goto(f"/processes/{house.pk}/?step=clearing")
    page.locator(f'#runs-rows a[data-sub="{room.pk}"]').click()
    expect(page.locator("#sub [data-node=cupboard].is-current")).to_be_visible()
    assert page.url.endswith(f"?step=clearing&sub={room.pk}#sub")
    page.locator("#sub header a", has_text="Close").click()
    expect(page.locator("#sub section")).to_have_count(0)


def test_s3_the_sub_process_fits_every_width_and_is_accessible(
    checked: Page, house: ProcessInstance
) -> None:
    cupboard = ProcessInstance.objects.get(parent=room_of(house, 2))
    for query in (f"?sub={cupboard.pk}", f"?at=2&sub={room_of(house, 0).pk}"):
        opened(checked, f"/processes/{house.pk}/{query}")
        assert complaints(checked) == []
        fits(checked)
