"""S8.2 in a browser: a ladder of deadlines is drawn as its code has it, and each rung is seen where people look."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from orchestrator import start_process
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, run
from orchestrator.testing.clock import move_times_back
from tests.apps.ladder.processes import Complaint, Question, QuestionAsked
from tests.browser.pressing import current, opened, stayed
from tests.services.crews import knowing
from tests.services.site import live_site

__all__ = ["live_site"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)

DRAWN = (
    ["after 1 hour", "/ notify clerk"],
    ["after 2 hours", "/ notify clerk, duty", "escalate"],
    ["after 3 hours", "[urgent = yes]", "/ notify boss"],
    ["after 4 hours"],
)
"""What stands at each rung of the ladder, line by line."""


ladder = knowing(Question, Complaint)


def asked(question: str = "Q-1") -> ProcessInstance:
    told = QuestionAsked(question)
    receipt = start_process(Question, told, id=f"ask {question}", source="desk")
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def tally(page: Page, name: str) -> Locator:
    return page.locator(f"#tallies [data-tally={name}]")


def test_s8_2_the_ladder_in_code_is_drawn_rung_by_rung(signed_in: Page) -> None:
    process = asked()

    for address in ("/definitions/question/", f"/processes/{process.pk}/"):
        opened(signed_in, address)
        rungs = signed_in.locator("#drawing g.is-deadline")
        expect(rungs).to_have_count(len(DRAWN))
        signed_in.locator("#drawing").scroll_into_view_if_needed()
        for rung, lines in zip(rungs.all(), DRAWN, strict=True):
            words = rung.locator("text")
            expect(words).to_have_text(lines)
            for line in words.all():  # none is cut off by the edge of the picture
                expect(line).to_be_in_viewport(ratio=0.99)


def test_s8_2_rung_after_rung_passes_on_its_open_page(signed_in: Page) -> None:
    opened(signed_in, asked())
    left = signed_in.locator("#now .timeouts li")
    expect(left).to_have_count(4)
    expect(left.nth(0)).to_contain_text("notify clerk")
    taken = signed_in.locator("#drawing g.is-deadline.is-done title")
    escalated = signed_in.locator("#header .chip", has_text="Escalated")

    pass_time(HOUR + MINUTE)
    expect(left.nth(0)).to_contain_text("Overdue since")
    expect(left.nth(1)).to_contain_text("notify clerk, duty")
    expect(taken).to_have_text(re.compile(": after 1 hour / notify clerk$"))
    expect(escalated).to_have_count(0)

    pass_time(HOUR)
    expect(escalated).to_contain_text("Escalated 1")
    expect(taken).to_have_count(2)
    expect(left.nth(1)).to_contain_text("[urgent = yes]")
    # It is not urgent: the boss is not told of it, and the picture says so beforehand.
    boss = signed_in.locator("#drawing g.is-deadline", has_text="notify boss")
    expect(boss).to_contain_class("is-off")

    pass_time(2 * HOUR)
    current(signed_in, "Answered")
    expect(taken.last).to_have_text(re.compile(": after 4 hours$"))
    expect(boss).to_contain_class("is-off")
    stayed(signed_in)


def test_s8_2_a_deadline_is_due_soon_overdue_then_escalated(signed_in: Page) -> None:
    late, early = asked("Q-late"), asked("Q-early")
    signed_in.goto("/waits/")
    row = signed_in.locator("#rows tr")
    expect(row).to_have_count(2)
    for name in ("soon", "overdue", "escalated"):
        expect(tally(signed_in, name).locator(".num")).to_have_text("0")

    move_times_back(50 * MINUTE, [late.pk])
    tally(signed_in, "soon").click()
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Q-late")
    expect(row.locator(".until .countdown")).to_have_text(re.compile(r"^0\d:\d\d$"))
    expect(row.locator(".until")).to_contain_text("notify clerk")

    # Nobody carries it out as long as there is no worker.
    move_times_back(12 * MINUTE, [late.pk])
    tally(signed_in, "overdue").click()
    expect(row).to_have_count(1)
    expect(row.locator(".until .over")).to_be_visible()
    expect(row.locator(".until .over")).to_contain_text("Overdue since")
    expect(tally(signed_in, "soon").locator(".num")).to_have_text("0")

    pass_time(HOUR, only=late.pk)
    tally(signed_in, "escalated").click()
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Q-late")
    expect(row.locator(".chip")).to_have_text("Escalated")
    expect(row.locator(".until")).not_to_contain_text("duty")
    expect(tally(signed_in, "overdue").locator(".num")).to_have_text("0")
    assert ProcessInstance.objects.get(pk=early.pk).escalation_level == 0
