"""S8, the page of waits in a browser: it stays where it is while things happen, and what rests stays as it was."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db.models import QuerySet
from django.utils import timezone
from playwright.sync_api import Page, expect

from examples.order_listing.messages import Destination
from monitoring.base.moments import span
from orchestrator.models import OperatorAction, StepRun
from orchestrator.testing import pass_time
from tests.browser.conftest import live
from tests.browser.orders import placed, waiting_order
from tests.browser.pressing import asked, opened, press, stayed, submit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


HOURS = timedelta(hours=3)


def waits_of(key: str) -> QuerySet[StepRun]:
    return StepRun.objects.filter(instance__correlation_key=key, finished_at=None)


def test_s8_1_what_waits_longest_is_one_click_away_and_rows_stay_in_their_places(
    signed_in: Page,
) -> None:
    now = timezone.now()
    for key, minutes in (("A-1", 20), ("A-2", 2)):
        placed(Destination.EXTERNAL, key)
        later = {"wake_at": now + timedelta(minutes=minutes), "extended": HOURS}
        waits_of(key).update(**later)
    opened(signed_in, "/")
    expect(signed_in.locator("#nav a[href='/waits/'] .num")).to_have_text("2")

    signed_in.click("#nav a[href='/waits/']")

    rows = signed_in.locator("#rows tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("A-2")
    expect(rows.nth(1)).to_contain_text("A-1")
    live(signed_in)
    placed(Destination.EXTERNAL, "A-3")
    expect(signed_in.locator("#new")).to_contain_text("1 new")
    late = waits_of("A-1")
    late.update(wake_at=now - timedelta(minutes=2))
    expect(rows.nth(0)).to_contain_text("A-2")
    expect(rows.nth(1)).to_contain_text("Overdue since")
    signed_in.goto("/waits/?kind=event")
    expect(rows.nth(0)).to_contain_text("A-1")
    late.update(wake_at=timezone.now() + timedelta(hours=1))  # nobody is late after all


def test_s8_3_whose_it_is_others_see_at_once(
    signed_in: Page, another_page: Callable[[str], Page]
) -> None:
    placed(Destination.EXTERNAL, "A-1")
    opened(signed_in, "/waits/")
    other = another_page("/waits/")

    press(signed_in, "assign", button="#rows button[data-opens='assign-dialog']")

    expect(signed_in.locator("#rows tr")).to_contain_text("operator")
    expect(other.locator("#rows tr")).to_contain_text("operator")
    button = "#rows button[data-opens='extend-dialog']"
    dialog = asked(signed_in, "extend", "the exchange is closed today", button)
    signed_in.fill("#extend-minutes", "600")
    submit(dialog).click()
    expect(signed_in.locator("#flash")).to_contain_text("The deadline is later now.")
    expect(other.locator("#rows .until .countdown")).to_contain_text(
        re.compile(r"^10 h \d min$")
    )


def test_s8_5_pause_says_first_that_deadlines_rest_and_they_do(signed_in: Page) -> None:
    order = waiting_order()
    pass_time(minutes=4)
    opened(signed_in, order)
    countdown = signed_in.locator("#now time.countdown")
    expect(countdown).to_have_text(re.compile(r"^05:\d\d$"))

    said = asked(signed_in, "pause", "the exchange is being moved")
    expect(said).to_contain_text("Its deadlines, the patience of its events")
    expect(said).to_contain_text("stand still, and go on with what is left of them")
    assert not OperatorAction.objects.exists()
    # A process manager has no sub-processes.
    expect(said.locator("#pause-children")).to_have_count(0)
    submit(said).click()

    # What is left stands there, and no longer counts.
    notice = signed_in.locator("#header .notice")
    expect(notice).to_contain_text("left when it goes on")
    expect(countdown).to_have_count(0)
    expect(signed_in.locator("#pause-button")).to_have_count(0)
    expect(signed_in.locator("#history")).to_contain_text("Pause by operator")
    stayed(signed_in)
    # The notice says since when, too, which may have the same digits.
    left = re.search(r"(05:\d\d) left", notice.inner_text())
    assert left
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
    signed_in.wait_for_url(f"**/processes/{order.process_id}/")
    opened(signed_in, order)
    press(signed_in, "unpause", "it has been moved")
    expect(countdown).to_be_visible()
    expect(signed_in.locator("#pause-button")).to_be_visible()
    expect(notice).to_have_count(0)
    stayed(signed_in)
    resumed = OperatorAction.objects.get(action="unpause").at
    until = datetime.fromisoformat(str(countdown.get_attribute("datetime")))
    minutes, seconds = map(int, left[1].split(":"))
    apart = until - resumed - timedelta(minutes=minutes, seconds=seconds)
    assert abs(apart) < timedelta(seconds=2)
    live(signed_in)
    pass_time(minutes=4, seconds=50)
    chips = signed_in.locator("#header .chip")
    expect(chips).to_have_text(["Waiting"])
    pass_time(minutes=1, seconds=10)
    expect(chips).to_have_text(["Waiting", re.compile("Escalated 1")])


def test_s8_3_a_process_assigned_to_oneself_is_found_by_that(signed_in: Page) -> None:
    order, page = waiting_order(), signed_in
    opened(page, order)
    expect(page.locator("#header .facts")).to_contain_text("Owner nobody")

    dialog = asked(page, "assign")
    expect(page.locator("#assign-person")).to_have_value("operator")
    expect(dialog.locator("textarea")).to_have_count(0)
    submit(dialog).click()

    expect(page.locator("#header .facts")).to_contain_text("Owner operator")
    page.goto("/processes/?owner=me")
    row = page.locator(f"[data-row='{order.process_id}']")
    expect(row.get_by_role("cell", name="operator", exact=True)).to_be_visible()
    page.goto("/processes/?owner=nobody")
    expect(page.locator(f"[data-row='{order.process_id}']")).to_have_count(0)


AGES = """(seconds) => {
    const main = document.getElementById("main");
    for (const each of seconds) {
        const time = document.createElement("time");
        time.className = "elapsed";
        time.dateTime = new Date(Date.now() - each * 1000).toISOString();
        main.append(time);
    }
    document.dispatchEvent(new Event("visibilitychange"));
    return [...main.querySelectorAll(":scope > time")].map((time) => time.textContent);
}"""
"""Adds times that were so long ago, and returns their lengths as the page's script writes them."""


def test_the_script_writes_lengths_of_time_as_the_server_does(signed_in: Page) -> None:
    opened(signed_in, "/waits/")
    signed_in.clock.set_fixed_time(signed_in.evaluate("Date.now()"))
    # Between two seconds: the server's clock is known to the second.
    lengths = [75.5, 3599.5 - 60, 3630.5, 28_296.5, 86_430.5, 273_900.5]
    written = signed_in.evaluate(AGES, lengths)
    near = [
        {span(timedelta(seconds=one + off)) for off in (-1.5, -0.5, 0.5, 1.5)}
        for one in lengths
    ]
    assert all(text in among for text, among in zip(written, near, strict=True))
