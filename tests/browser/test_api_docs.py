"""The page of the API in a browser: what it loads is ours, and a call that is tried out with a token is answered."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Request, expect

from tests.services.forms_of_actions import value_for
from tests.services.site import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]


def test_a_call_is_tried_out_on_the_page_of_the_api(
    signed_in: Page, live_site: Site, operator: User
) -> None:
    _token, value = value_for(operator)
    wrong, elsewhere = list[str](), list[str]()

    def asked(request: Request) -> None:
        if not request.url.startswith((live_site.url, "data:")):
            elsewhere.append(request.url)

    signed_in.on("request", asked)
    signed_in.on(
        "console",
        lambda message: wrong.append(message.text) if message.type == "error" else None,
    )
    signed_in.goto("/api/docs/")
    described = signed_in.locator("#api .opblock-summary-path")
    expect(described.filter(has_text="escalate")).to_be_visible()

    signed_in.locator("#api .auth-wrapper .authorize").click()
    signed_in.locator("#api .auth-container input").fill(value)
    signed_in.locator("#api .auth-btn-wrapper .authorize").click()
    signed_in.locator("#api .auth-btn-wrapper .btn-done").click()
    path = signed_in.locator('[data-path="/api/tokens/"]')
    call = signed_in.locator("#api .opblock-get", has=path)
    call.locator(".opblock-summary-control").click()
    call.locator(".try-out__btn").click()
    call.locator(".execute").click()

    expect(
        call.locator(".live-responses-table .response-col_status").last
    ).to_contain_text("200")
    expect(call.locator(".live-responses-table")).to_contain_text("bot's “own”")
    assert (wrong, elsewhere) == ([], [])
    signed_in.emulate_media(color_scheme="dark")
    expect(signed_in.locator("html.dark-mode")).to_be_attached()
