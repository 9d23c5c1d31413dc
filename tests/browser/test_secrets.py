"""S12.3, secrets, in a browser: nothing that a page is sent has one, until a person asks for a look and says why."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from playwright.sync_api import Page, expect

from monitoring.live.watchers import ASK_EVERY
from orchestrator import send_event
from orchestrator.definition.secrets import MASK
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.testing import run
from tests.apps.kept_secret.fixtures import asked, secretive
from tests.apps.kept_secret.processes import CODE, HUSH, NUMBER, CodeEntered
from tests.browser.conftest import fits
from tests.browser.pressing import opened
from tests.browser.received import Received

__all__ = ["secretive"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("secretive"),
]


def test_s12_3_secrets_are_masked_until_a_person_has_them_shown(
    signed_in: Page, operator: User
) -> None:
    page, received = signed_in, Received(signed_in)
    process = asked("P-1")
    opened(page, f"/processes/{process}/")
    # Until then whoever commits may go by an older answer about which pages are open.
    page.wait_for_timeout(1_000 * ASK_EVERY + 100)
    data = page.locator("#data")
    expect(data).to_contain_text(MASK)
    expect(data).to_contain_text("A. Person")

    send_event(CodeEntered("P-1", CODE), id="code-1", source="shop")
    run()  # it fails, and says all that it knows
    expect(page.locator("#header")).to_contain_text("no bank takes")
    expect(page.locator("#history")).to_contain_text(MASK)
    page.goto(f"/processes/{process}/?at=1&beside=now")
    page.goto("/failures/")
    page.goto("/events/?tab=all")
    assert received.frames
    assert len(received.texts) > 3
    assert not received.with_any(HUSH)

    # Without the permission the page says why; with it a person needs no mouse.
    page.goto(f"/processes/{process}/")
    page.locator("#reveal-button").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#reveal button[type=submit]")).to_be_disabled()
    expect(page.locator("#reveal-why")).to_be_visible()
    operator.user_permissions.add(Permission.objects.get(codename="reveal_secrets"))
    page.reload()
    page.locator("#reveal-reason").focus()
    page.keyboard.type("the bank asks")
    page.keyboard.press("Tab")
    assert not received.with_any(HUSH)
    page.keyboard.press("Enter")
    shown = page.locator(".revealed")
    expect(shown.first).to_contain_text(NUMBER)
    expect(shown.first).to_contain_text("秘密の言葉")
    fits(page)
    look = OperatorAction.objects.get(action="reveal")
    assert (look.actor_name, look.reason) == ("operator", "the bank asks")

    # Going back and forth asks again; nothing of it is in another page.
    page.goto(f"/processes/{process}/")
    expect(page.locator("#data")).not_to_contain_text(HUSH)
    page.goto("/audit/?action=reveal")
    expect(page.locator("#audit")).to_contain_text("the bank asks")
    expect(page.locator("#audit")).not_to_contain_text(HUSH)
    assert ProcessInstance.objects.get(pk=process).data["code"] == CODE
