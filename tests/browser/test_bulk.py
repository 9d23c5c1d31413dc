"""S6, actions on many, in a browser: from the first page to every verdict, told live; paused and resumed."""

import os
import signal
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.db.models import Count
from playwright.sync_api import Page, expect

from orchestrator.engine.operations import Pace
from orchestrator.models import BulkOperation, Incident, OperatorAction
from orchestrator.testing import run
from tests.browser.conftest import live
from tests.browser.orders import failed
from tests.browser.pressing import opened, press, stayed
from tests.services.bulk import begun, frozen, settled, slice_of, verdicts, worked_on
from tests.services.hired import hire_for_long
from tests.services.patience import wait_for
from tests.services.workers import Workers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


def last() -> BulkOperation:
    return BulkOperation.objects.latest("pk")


def test_s6_1_s6_3_s6_4_fifty_of_one_cause_are_tried_again_in_three_clicks(
    signed_in: Page,
) -> None:
    hire_for_long()
    failed(50)
    signed_in.goto("/")
    expect(signed_in.locator("#headline p")).to_contain_text("50 failures")

    signed_in.click("#headline .acts a.primary")
    expect(signed_in.locator("#total")).to_have_text("50")
    expect(signed_in.locator("#matching tbody tr")).to_have_count(20)
    assert not OperatorAction.objects.exists()  # who only looks leaves no trace
    signed_in.fill("#begin textarea", "the exchange is there")
    signed_in.click("#begin-button")

    live(signed_in)
    failed(1)  # what comes now is no part of it
    operation = last()
    worked_on(operation)
    expect(signed_in.locator(".head .chip")).to_have_text("stopped")
    expect(signed_in.locator("#why")).to_contain_text("1 of 1 failed again")
    expect(signed_in.locator("#items tr[data-verdict=failed]")).to_have_count(1)
    expect(signed_in.locator("#newcomers")).to_contain_text("1 new failure")
    assert operation.total == 50

    press(signed_in, "resume_bulk")
    expect(signed_in.locator(".head .chip")).not_to_have_text("stopped")


def test_s6_3_progress_is_live_and_buttons_act(signed_in: Page, operator: User) -> None:
    failed(3)
    cause = Incident.objects.open().latest("pk").fingerprint
    pace = Pace(samples=(1, 2), stop_above=None)
    about = {"cause": cause}
    operation = frozen(begun(operator, about, 3, selection="failures", pace=pace))
    opened(signed_in, f"/operations/{operation.pk}/")
    expect(signed_in.locator("#settled")).to_have_text("0 of 3 have their verdict")

    slice_of(operation)
    expect(signed_in.locator("#items tr[data-verdict=tried]")).to_have_count(1)
    run()
    slice_of(operation)
    expect(signed_in.locator("#settled")).to_have_text("1 of 3 have their verdict")

    press(signed_in, "pause_bulk")
    expect(signed_in.locator(".head .chip")).to_have_text("paused")
    button = signed_in.locator("#pause_bulk-button")
    expect(button).to_have_attribute("aria-disabled", "true")
    press(signed_in, "cancel_bulk")
    expect(signed_in.locator(".head .chip")).to_have_text("cancelled")
    expect(signed_in.locator("#flash")).to_contain_text("Cancelled.")
    worked_on(operation)

    signed_in.click("a[data-verdict=failed]")
    expect(signed_in.locator("#items tbody tr[data-verdict=waiting]")).to_have_count(0)
    press(signed_in, "repeat_bulk", "once more")
    expect(signed_in.locator("a", has_text="The operation before")).to_be_visible()
    assert last().again_of == operation


MANY = 60


@pytest.mark.timeout(900)
def test_s6_5_it_goes_on_after_its_worker_was_killed_and_each_item_has_its_verdict(
    workers: Workers, signed_in: Page, operator: User
) -> None:
    failed(MANY)
    wait_for(lambda: Incident.objects.open().count() == MANY, 20)
    cause = Incident.objects.open().latest("pk").fingerprint
    pace = Pace(samples=(), batch=4, rate=20, stop_above=None)
    operation = begun(operator, {"cause": cause}, MANY, selection="failures", pace=pace)
    opened(signed_in, f"/operations/{operation.pk}/")
    wait_for(lambda: settled(operation) >= 4, 20, lambda: verdicts(operation))

    killed = workers.pids
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    assert killed
    assert settled(operation) < MANY
    expect(signed_in.locator("#settled")).to_have_text(
        f"{MANY} of {MANY} have their verdict"
    )
    expect(signed_in.locator(".head .chip")).to_have_text("completed")
    stayed(signed_in)
    signed_in.click("a[data-verdict=failed]")
    expect(signed_in.locator("a[data-verdict=failed] .num")).to_have_text(str(MANY))
    expect(signed_in.locator("#items tr[data-verdict=failed]").first).to_be_visible()
    assert verdicts(operation) == {"failed": MANY}
    done = OperatorAction.objects.filter(action="retry", bulk=operation)
    assert done.aggregate(each=Count("instance", distinct=True)) == {"each": MANY}
    assert done.count() == MANY
