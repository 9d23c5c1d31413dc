"""S12.5: each form of the console shows the same call with curl, and what is shown does what the button does."""

import json
import os
import re
import shutil
import subprocess
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Error, Locator, Page, expect

from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import OperatorAction
from tests.apps.every_construct.fixtures import helpdesk
from tests.browser.conftest import fits, live
from tests.browser.samples import HARMFUL
from tests.services.forms_of_actions import (
    REASON,
    Place,
    failed_order,
    place_for,
    value_for,
)
from tests.services.site import Site, live_site
from tests.services.sizes import size

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("helpdesk"),
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]

BY_REST = [name for name, operation in OPERATIONS.items() if operation.by_rest]
SOME = BY_REST[:: size(5, full=1)]
"""Of each kind of form one; that each call does what its button does is shown in process."""


def opened(page: Page, name: str, place: Place) -> Locator:
    """Open the form of an action, and fill it in."""
    page.goto(place.page)
    live(page)
    for what in place.opens:
        page.locator(what).first.click()
    if place.form:
        form = page.locator(place.form).first
    else:
        page.locator(f"[data-opens={name}-dialog]:not([aria-disabled])").first.click()
        form = page.locator(f"#{name}-dialog form")
        if OPERATIONS[name].asks_reason:
            form.locator("[name=reason]").fill(REASON)
    for what, text in place.filled.items():
        form.locator(what).first.fill(text)
    return form


def call_of(form: Locator, number: int = 0) -> str:
    """What the form shows as its call."""
    shown = form.locator("details.curl").nth(number)
    shown.locator("summary").click()
    text = shown.locator("code").inner_text()
    shown.locator("summary").click()
    return text


def run(call: str, value: str) -> tuple[int, dict[str, Any]]:
    """Give a call to a shell as a person would; the status, and the answer."""
    about = {"PATH": os.environ["PATH"], "PROCESSION_TOKEN": value}
    command = f"{call} -sS -w '\\n%{{http_code}}'"
    done = subprocess.run(
        ["/bin/sh", "-c", command], env=about, capture_output=True, check=True
    )
    body, _line, status = done.stdout.decode().rpartition("\n")
    return int(status), json.loads(body)


@pytest.mark.full_size("every action", seconds=60)
@pytest.mark.parametrize("name", SOME)
def test_s12_5_the_call_that_a_form_shows_does_what_its_button_does(
    name: str, signed_in: Page, operator: User
) -> None:
    token, value = value_for(operator)
    place = place_for(name, operator)
    form = opened(signed_in, name, place)
    before = OperatorAction.objects.latest("pk").pk
    number = 1 if name == "decline_repair" else 0

    call = call_of(form, number)
    assert "/api/" in call
    status, answer = run(call, value)

    assert (status, answer["done"]) == (200, True), (call, answer)
    [row] = OperatorAction.objects.filter(pk__gt=before)
    assert (row.action, row.result) == (place.audit or name, "done")
    assert (row.actor_name, row.after["way"]) == ("operator", f"token {token.name}")
    key = re.search(r"'key=([0-9a-f-]+)'", call)
    assert key
    assert row.key == UUID(key[1])
    if "reason" in call:
        assert row.reason in (REASON, "")

    # The button says the same: its press is the one that was made, so nothing more is done.
    answered = pressed(signed_in, form, name)
    assert answered < 400
    assert not OperatorAction.objects.filter(pk__gt=row.pk).exists()
    again, told = run(call, value)
    assert (again, told["done"]) == (200, True), told
    assert not OperatorAction.objects.filter(pk__gt=row.pk).exists()
    leave(signed_in)  # a live page would ask while the tables are emptied


def leave(page: Page) -> None:
    """Have a page ask nothing more; to close one that is on its way to another may take for ever."""
    while True:
        try:
            page.goto("about:blank")
        except Error as error:
            if "interrupted" not in str(error) and "ERR_ABORTED" not in str(error):
                raise
        else:
            return


def pressed(page: Page, form: Locator, name: str) -> int:
    """Press the form's own button; the status of what is answered."""
    button = form.locator("button[type=submit]:not([name=preview])").first
    if name == "decline_repair":
        button = form.locator("button[formaction]")
    with page.expect_response(lambda answer: answer.request.method == "POST") as asked:
        button.click()
    return asked.value.status


REASONS = (
    *HARMFUL,
    *("a\nb", "tab\there", "\x1b[201~rm -rf ~\r", "%0A&x=y+z", "@/etc/passwd"),
)


@pytest.mark.once
def test_s12_5_no_text_leaves_its_shell_word(signed_in: Page, operator: User) -> None:
    _token, value = value_for(operator)
    signed_in.goto(f"/processes/{failed_order().pk}/")
    live(signed_in)
    signed_in.click("#escalate-button")
    form = signed_in.locator("#escalate-dialog form")
    for reason in REASONS:
        form.locator("[name=reason]").fill(reason)
        call, kept = call_of(form), form.locator("[name=reason]").input_value()
        assert not set(call) & {"\x1b", "\r", "\u202e", "\u2066"}
        assert f"reason={kept}" in words_of(call)

    status, answer = run(call, value)
    assert status == 200, answer
    assert OperatorAction.objects.get(action="escalate").reason == REASONS[-1]


def words_of(call: str) -> list[str]:
    """Return the words that a shell makes of a call, also as they are where they are encoded."""
    told = f"curl() {{ printf '%s\\0' \"$@\"; }}; {call}"
    done = subprocess.run(["/bin/sh", "-c", told], capture_output=True, check=True)
    words = done.stdout.decode().split("\0")
    return [*words, *map(unquote, words)]


@pytest.mark.once
def test_s12_5_it_is_read_and_copied_by_keyboard_and_never_has_a_token(
    signed_in: Page, operator: User
) -> None:
    signed_in.context.grant_permissions(["clipboard-read", "clipboard-write"])
    _token, value = value_for(operator)
    signed_in.goto(f"/processes/{failed_order().pk}/")
    live(signed_in)
    signed_in.locator("#escalate-button").focus()
    signed_in.keyboard.press("Enter")
    dialog = signed_in.locator("#escalate-dialog")
    dialog.locator("[name=reason]").fill("by keys")

    for key in ("Tab", "Enter", "Tab", "Tab", "Enter"):
        signed_in.keyboard.press(key)

    expect(dialog.locator(".copied [role=status]")).to_have_text("Copied.")
    copied = signed_in.evaluate("navigator.clipboard.readText()")
    assert "'reason=by keys'" in copied
    assert "$PROCESSION_TOKEN" in copied
    assert value not in signed_in.content()
    expect(dialog).to_be_visible()
    assert not OperatorAction.objects.filter(action="escalate").exists()


@pytest.mark.once
def test_s12_5_a_form_without_scripts_shows_its_call_too(
    without_scripts: Page, operator: User
) -> None:
    _token, value = value_for(operator)
    place, page = place_for("start_bulk", operator), without_scripts
    page.goto(place.page)
    form = page.locator(place.form)

    call = call_of(form).replace("'reason='", "'reason=by hand'")
    status, answer = run(call, value)

    assert (status, answer["done"]) == (200, True), answer


@pytest.mark.once
def test_s12_5_a_token_is_made_shown_once_used_and_revoked(
    signed_in: Page, live_site: Site
) -> None:
    signed_in.goto("/")
    signed_in.click("nav a[href='/tokens/']")
    signed_in.fill("#token-name", "nightly 夜")
    signed_in.click("#make-button")
    value = signed_in.locator("#made code").inner_text()
    expect(signed_in.locator("#tokens tbody tr")).to_contain_text("nightly 夜")
    asking = f'curl {live_site.url}/api/processes/ -H "Authorization: Bearer $PROCESSION_TOKEN"'
    assert run(asking, value)[0] == 200
    signed_in.goto("/tokens/")
    assert value not in signed_in.content()

    signed_in.click("[data-opens=revoke_token-dialog]")
    signed_in.click("#revoke_token-dialog .acts button:last-child")

    expect(signed_in.locator("#flash")).to_contain_text("Revoked.")
    expect(signed_in.locator("#tokens tbody tr")).to_contain_text("revoked")
    assert run(asking, value)[0] == 401
    signed_in.reload()
    fits(signed_in)
