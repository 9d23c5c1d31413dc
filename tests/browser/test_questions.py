"""A question in a browser: the dialog names the process, says what it is about, and its button is the choice."""

import re

import pytest
from playwright.sync_api import Page, expect

from orchestrator.models import OperatorAction
from tests.apps.questions.processes import Lending, Sailing
from tests.browser.conftest import fits, live
from tests.console.test_questions import loan
from tests.services.crews import knowing
from tests.services.site import live_site

__all__ = ["live_site"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

known = knowing(Lending, Sailing)


def test_the_button_of_the_dialog_is_the_choice(
    transactional_db: None, signed_in: Page
) -> None:
    lending, sailing = loan(), loan(Sailing)
    signed_in.goto("/decisions/")
    live(signed_in)
    dialog = signed_in.locator("#decide-dialog")

    signed_in.get_by_role("button", name="To the north").click()
    expect(dialog.locator(".subject")).to_have_text(f"Course: To the north · {sailing}")
    expect(dialog.locator(".help")).to_be_hidden()
    expect(dialog.locator("[type=submit]")).to_have_text("To the north")
    expect(dialog).to_have_accessible_description(
        re.compile(
            f"Course: To the north · {sailing} customer: Ada .* The process goes on"
        )
    )
    dialog.locator("[type=submit]").click()  # the browser asks for the reason
    expect(dialog).to_be_visible()
    dialog.locator("[data-closes]").click()

    signed_in.get_by_role("button", name="Grant it").click()
    expect(dialog.locator(".subject")).to_contain_text("Loan for Ada")
    expect(dialog.locator(".about")).to_have_text(
        "amount: 12000\nRate: rated 12\npin: ••••••", use_inner_text=True
    )
    expect(dialog.locator(".help")).to_have_text("The money is sent today.")
    fits(signed_in)
    assert not OperatorAction.objects.exists()
    dialog.locator("[type=submit]").click()
    expect(dialog).to_be_hidden()
    action = OperatorAction.objects.get()
    assert (action.instance_id, action.reason) == (lending.pk, "")
