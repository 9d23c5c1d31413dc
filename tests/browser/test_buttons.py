"""Retry and Escalate, pressed by an operator in a browser."""

from collections.abc import Callable

import pytest
from django.conf import settings
from playwright.sync_api import Page, Route, expect

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.engine.drain import drain
from orchestrator.models import InboxEvent, OperatorAction
from tests.browser.conftest import IN_PROCESS_TOO, live
from tests.browser.orders import WHAT, created_outside, started
from tests.browser.samples import orders
from tests.services.exchange import ExchangeProcess
from tests.services.workers import Workers


def press(page: Page, button: str, reason: str) -> None:
    page.click(f"#{button}-button")
    page.fill(f"#{button}-dialog textarea", reason)
    page.click(f"#{button}-dialog .acts button:last-child")


def open_waiting_order(exchange: ExchangeProcess, page: Page) -> None:
    """Open the page of an order that waits for an exchange that says nothing."""
    exchange.behave(shortest=3600.0, longest=3600.0)
    order = place_order(Destination.BOTH, WHAT)
    started(order)
    page.goto(f"/processes/{order.process_id}/")
    live(page)


def test_retry_brings_an_order_with_a_failing_exchange_call_to_completion(
    exchange: ExchangeProcess, workers: Workers, signed_in: Page
) -> None:
    exchange.behave(refuse=1.0)
    order = place_order(Destination.BOTH, WHAT)
    started(order)
    signed_in.goto(f"/processes/{order.process_id}/")
    live(signed_in)
    expect(signed_in.locator("#n_AwaitingExternalCreation.is-failed")).to_be_visible()
    expect(signed_in.locator(".trouble")).to_contain_text("403")
    expect(signed_in.locator("#retry-button")).to_have_class("primary")
    exchange.behave(refuse=0.0)

    press(signed_in, "retry", "the exchange takes orders again")

    expect(signed_in.locator("#flash")).to_contain_text("Trying again")
    expect(signed_in.locator("#n_Completed.is-current")).to_be_visible()
    expect(signed_in.locator(".trouble")).to_have_count(0)
    expect(signed_in.locator("#retry-button")).to_have_attribute(
        "aria-disabled", "true"
    )
    expect(signed_in.locator("#ledger")).to_contain_text("Retry by operator")


def test_an_escalation_appears_in_the_list_and_on_another_open_page(
    exchange: ExchangeProcess,
    workers: Workers,
    signed_in: Page,
    another_page: Callable[[str], Page],
) -> None:
    exchange.behave(shortest=3600.0, longest=3600.0)
    order = place_order(Destination.BOTH, WHAT)
    started(order)
    address = f"/processes/{order.process_id}/"
    the_list, another = another_page("/processes/"), another_page(address)
    signed_in.goto(address)
    live(signed_in)

    press(signed_in, "escalate", "the customer called twice")

    for page in (signed_in, another):
        expect(page.locator(".head .chip.c-failed")).to_contain_text("Escalated")
    expect(the_list.locator(f"[data-row='{order.process_id}']")).to_contain_text(
        "Escalated"
    )


def test_a_stale_page_is_told_what_changed_and_shows_it(
    exchange: ExchangeProcess,
    workers: Workers,
    signed_in: Page,
    another_page: Callable[[str], Page],
) -> None:
    exchange.behave(shortest=3600.0, longest=3600.0)
    order = place_order(Destination.BOTH, WHAT)
    started(order)
    address = f"/processes/{order.process_id}/"
    another = another_page(address)
    signed_in.goto(address)
    live(signed_in)
    signed_in.click(
        "#escalate-button"
    )  # the dialog remembers the revision it was opened at
    press(another, "escalate", "first")
    expect(another.locator(".head .chip.c-failed")).to_be_visible()

    signed_in.fill("#escalate-dialog textarea", "second")
    signed_in.click("#escalate-dialog .acts button:last-child")

    refusal = signed_in.locator("#escalate-dialog .result")
    expect(refusal).to_contain_text("The process has changed since the page was loaded")
    expect(signed_in.locator(".head .chip.c-failed")).to_contain_text("Escalated 1")


def test_pressing_twice_acts_once(
    exchange: ExchangeProcess, workers: Workers, signed_in: Page
) -> None:
    open_waiting_order(exchange, signed_in)
    signed_in.click("#escalate-button")
    signed_in.fill("#escalate-dialog textarea", "twice")

    signed_in.evaluate(
        """() => {
            const button = document.querySelector("#escalate-dialog .acts button:last-child");
            button.click();
            button.click();
        }"""
    )

    expect(signed_in.locator(".head .chip.c-failed")).to_contain_text("Escalated 1")
    assert OperatorAction.objects.filter(action="escalate").count() == 1


@pytest.mark.once
def test_pressing_again_after_the_server_was_out_of_reach_acts_once(
    exchange: ExchangeProcess, workers: Workers, signed_in: Page
) -> None:
    open_waiting_order(exchange, signed_in)
    signed_in.route("**/escalate/", losing_the_answer)

    press(signed_in, "escalate", "nobody answers")

    result = signed_in.locator("#escalate-dialog .result")
    expect(result).to_contain_text("The server did not answer")
    signed_in.unroute("**/escalate/")
    signed_in.click("#escalate-dialog .acts button:last-child")
    expect(signed_in.locator("#escalate-dialog")).to_be_hidden()
    assert OperatorAction.objects.filter(action="escalate").count() == 1


def losing_the_answer(route: Route) -> None:
    route.fetch()
    route.abort()


@pytest.mark.once
def test_a_button_pressed_by_nobody_says_so_and_does_nothing(
    exchange: ExchangeProcess, workers: Workers, signed_in: Page
) -> None:
    open_waiting_order(exchange, signed_in)
    signed_in.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)

    press(signed_in, "escalate", "who am I?")

    result = signed_in.locator("#escalate-dialog .result")
    expect(result).to_contain_text("you are signed out")
    assert not OperatorAction.objects.exists()


@pytest.mark.once
@IN_PROCESS_TOO
def test_opening_a_dialog_writes_nothing(
    exchange: ExchangeProcess, workers: Workers, signed_in: Page
) -> None:
    order = place_order(Destination.INTERNAL, WHAT)
    started(order)
    signed_in.goto(f"/processes/{order.process_id}/")
    signed_in.locator("#escalate-button").focus()

    signed_in.keyboard.press("Enter")
    signed_in.keyboard.press("Escape")

    assert not OperatorAction.objects.exists()


def test_discarding_an_event_takes_it_off_the_list(
    transactional_db: None, signed_in: Page
) -> None:
    placed = orders()
    signed_in.goto("/events/?tab=parked")
    live(signed_in)
    expect(signed_in.locator("#events tbody tr")).to_have_count(1)
    signed_in.click("#events button.danger")
    expect(signed_in.locator("#discard-dialog .subject")).to_contain_text(
        "ListedOnExternal"
    )

    signed_in.fill("#discard-dialog textarea", "sent by mistake")
    signed_in.click("#discard-dialog .acts button:last-child")

    expect(signed_in.locator("#flash")).to_contain_text("Discarded")
    expect(signed_in.locator("#events .empty")).to_be_visible()
    expect(signed_in.locator("dialog[open]")).to_have_count(0)
    event = InboxEvent.objects.get(event_id=f"early {placed['early'].order_id}")
    assert event.verdict == "discarded"


@pytest.mark.once
def test_a_hidden_tab_rests_and_catches_up_when_it_is_shown(
    transactional_db: None, signed_in: Page
) -> None:
    order = orders()["failed"]
    fetched: list[str] = []
    signed_in.on("requestfinished", lambda request: fetched.append(request.url))
    signed_in.goto(f"/processes/{order.process_id}/")
    live(signed_in)
    while sum("since=" in url for url in fetched) < 2:  # once its socket is open
        signed_in.wait_for_timeout(50)
    # What the page was just about to ask for when it was hidden, it still asks for.
    signed_in.evaluate(
        """() => {
            window.away = true;
            Object.defineProperty(document, "hidden", { get: () => window.away, configurable: true });
            return new Promise((over) => setTimeout(over, 700));
        }"""
    )
    requests: list[str] = []
    signed_in.on("request", lambda request: requests.append(request.url))
    created_outside(order)
    drain()
    signed_in.wait_for_timeout(700)
    asked_while_hidden = list(requests)

    signed_in.evaluate(
        "() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }"
    )

    expect(signed_in.locator("#n_Completed.is-current")).to_be_visible()
    assert asked_while_hidden == []
    assert requests


@pytest.mark.parametrize("status", [404, 413, 500])
def test_a_server_that_refuses_is_not_said_to_be_silent(
    signed_in: Page, status: int
) -> None:
    order = place_order(Destination.EXTERNAL, WHAT)
    drain()
    signed_in.goto(f"/processes/{order.process_id}/")
    signed_in.route("**/escalate/", lambda route: route.fulfill(status=status))

    press(signed_in, "escalate", "because")

    answer = signed_in.locator("#escalate-dialog .result")
    expect(answer).to_contain_text("the server refused it")
    expect(answer).not_to_contain_text("did not answer")
