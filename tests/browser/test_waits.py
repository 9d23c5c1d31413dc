"""S8, the page of waits in a browser: it stays where it is while things happen, and what rests stays as it was."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.engine.drain import drain
from orchestrator.models import OperatorAction, StepRun
from orchestrator.testing import pass_time
from tests.browser.conftest import fits, live
from tests.browser.orders import waiting_order

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


def test_s8_1_what_waits_longest_is_one_click_away_and_rows_stay_in_their_places(
    signed_in: Page,
) -> None:
    now = timezone.now()
    for key, minutes in (("A-1", 20), ("A-2", 2)):
        place_order(Destination.EXTERNAL, "50 MWh", key)
        drain()
        open_visits = StepRun.objects.filter(
            finished_at=None, instance__correlation_key=key
        )
        open_visits.update(wake_at=now + timedelta(minutes=minutes))
    signed_in.goto("/")
    live(signed_in)
    expect(signed_in.locator("#nav a[href='/waits/'] .num")).to_have_text("2")

    signed_in.click("#nav a[href='/waits/']")

    rows = signed_in.locator("#rows tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("A-2")
    expect(rows.nth(1)).to_contain_text("A-1")
    live(signed_in)
    place_order(Destination.EXTERNAL, "50 MWh", "A-3")
    drain()
    expect(signed_in.locator("#new")).to_contain_text("1 new")
    late = StepRun.objects.filter(instance__correlation_key="A-1", finished_at=None)
    late.update(wake_at=now - timedelta(minutes=2))
    expect(rows.nth(0)).to_contain_text("A-2")
    expect(rows.nth(1)).to_contain_text("Overdue since")
    signed_in.goto("/waits/?kind=event")
    fits(signed_in)
    expect(rows.nth(0)).to_contain_text("A-1")
    late.update(wake_at=timezone.now() + timedelta(hours=1))  # nobody is late after all


def test_s8_3_whose_it_is_others_see_at_once(
    signed_in: Page, another_page: Callable[[str], Page]
) -> None:
    place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    drain()
    signed_in.goto("/waits/")
    live(signed_in)
    other = another_page("/waits/")

    signed_in.click("#rows button[data-opens='assign-dialog']")
    signed_in.click("#assign-dialog .acts button:last-child")

    expect(signed_in.locator("#rows tr")).to_contain_text("operator")
    expect(other.locator("#rows tr")).to_contain_text("operator")
    signed_in.click("#rows button[data-opens='extend-dialog']")
    signed_in.fill("#extend-dialog textarea", "the exchange is closed today")
    signed_in.fill("#extend-minutes", "600")
    signed_in.click("#extend-dialog .acts button:last-child")
    expect(signed_in.locator("#flash")).to_contain_text("The deadline is later now.")
    expect(other.locator("#rows .until .countdown")).to_contain_text("10:0")


def test_s8_5_pause_says_before_the_click_that_deadlines_rest_and_so_it_is(
    signed_in: Page,
) -> None:
    order = waiting_order()
    pass_time(minutes=4)
    signed_in.goto(f"/processes/{order.process_id}/")
    live(signed_in)
    countdown = signed_in.locator("#now time.countdown")
    expect(countdown).to_have_text(re.compile(r"^05:\d\d$"))

    signed_in.click("#pause-button")
    said = signed_in.locator("#pause-dialog")
    expect(said).to_contain_text("Its deadlines, the patience of its events")
    expect(said).to_contain_text("stand still, and go on with what is left of them")
    assert not OperatorAction.objects.exists()
    signed_in.fill("#pause-dialog textarea", "the exchange is being moved")
    signed_in.click("#pause-dialog .acts button:last-child")

    # What is left stands there, and no longer counts.
    notice = signed_in.locator("#header .notice")
    expect(notice).to_contain_text("left when it goes on")
    expect(countdown).to_have_count(0)
    # The notice says since when, too, which may have the same digits.
    left = re.search(r"(05:\d\d) left", notice.inner_text())
    assert left is not None
    pass_time(hours=2)
    for address, place in (
        (f"/processes/{order.process_id}/", "#header"),
        ("/waits/", "#rows tr"),
    ):
        signed_in.goto(address)
        shown = signed_in.locator(place)
        expect(shown).to_contain_text(f"{left[1]} left when it goes on")
        expect(shown.locator(".chip")).to_have_text(["Paused"])
        expect(signed_in.locator("main .countdown")).to_have_count(0)

    signed_in.click("#rows a.subject")
    signed_in.click("#unpause-button")
    signed_in.fill("#unpause-dialog textarea", "it has been moved")
    signed_in.click("#unpause-dialog .acts button:last-child")
    expect(countdown).to_be_visible()
    resumed = OperatorAction.objects.get(action="unpause").at
    until = datetime.fromisoformat(str(countdown.get_attribute("datetime")))
    minutes, seconds = map(int, left[1].split(":"))
    apart = until - resumed - timedelta(minutes=minutes, seconds=seconds)
    assert abs(apart) < timedelta(seconds=2)
    live(signed_in)
    pass_time(minutes=4, seconds=50)
    expect(signed_in.locator("#header .chip")).to_have_text(["Waiting"])
    pass_time(minutes=1, seconds=10)
    expect(signed_in.locator("#header .chip")).to_have_text(
        ["Waiting", re.compile("Escalated 1")]
    )
