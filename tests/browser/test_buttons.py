"""Retry, Escalate and Discard, pressed by an operator in a browser."""

from collections.abc import Callable

import pytest
from django.conf import settings
from playwright.sync_api import Page, Route, expect

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from orchestrator.models import InboxEvent, OperatorAction
from tests.browser.conftest import live
from tests.browser.orders import WHAT, started, waiting_order, went_on
from tests.browser.pressing import asked, current, opened, press, submit
from tests.browser.samples import orders
from tests.services.exchange import ExchangeProcess
from tests.services.workers import Workers


@pytest.fixture
def order(signed_in: Page) -> Order:
    """An order that waits for the exchange, whose page is open."""
    order = waiting_order()
    opened(signed_in, order)
    return order


def test_without_scripts_it_is_said_that_buttons_need_them(
    without_scripts: Page,
) -> None:
    page = without_scripts
    page.goto(f"/processes/{waiting_order().process_id}/")

    expect(page.locator("noscript .notice")).to_contain_text("runs no scripts")
    buttons = page.locator("[data-opens], [data-zoom], [data-play], [data-follow]")
    expect(page.locator("[data-opens]")).not_to_have_count(0)
    for button in buttons.all():
        expect(button).to_have_css("cursor", "not-allowed")


def test_retry_brings_an_order_with_a_failing_exchange_call_to_completion(
    exchange: ExchangeProcess, workers: Workers, signed_in: Page
) -> None:
    exchange.behave(refuse=1.0)
    order = place_order(Destination.BOTH, WHAT)
    started(order)
    opened(signed_in, order)
    expect(signed_in.locator("#n_AwaitingExternalCreation.is-failed")).to_be_visible()
    expect(signed_in.locator(".trouble")).to_contain_text("403")
    button = signed_in.locator("#retry-button")
    expect(button).to_have_class("primary")
    exchange.behave(refuse=0.0)

    press(signed_in, "retry", "the exchange takes orders again")

    expect(signed_in.locator("#flash")).to_contain_text("Trying again")
    current(signed_in, "Completed")
    expect(signed_in.locator(".trouble")).to_have_count(0)
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(signed_in.locator("#history")).to_contain_text("Retry by operator")


def escalated(page: Page) -> None:
    chip = page.locator(".head .chip.c-failed")
    expect(chip).to_contain_text("Escalated 1")


def test_an_escalation_appears_everywhere_and_a_stale_page_is_told_what_changed(
    order: Order, signed_in: Page, another_page: Callable[[str], Page]
) -> None:
    the_list, another = another_page("/processes/"), another_page(signed_in.url)
    live(another)
    stale = asked(another, "escalate")  # it remembers the revision it was opened at

    press(signed_in, "escalate", "the customer called twice")

    for page in (signed_in, another):
        escalated(page)
    row = the_list.locator(f"[data-row='{order.process_id}']")
    expect(row).to_contain_text("Escalated")
    stale.locator("textarea").fill("second")
    submit(stale).click()
    refusal = stale.locator(".result")
    expect(refusal).to_contain_text("The process has changed since the page was loaded")
    escalated(another)


def test_pressing_again_after_the_server_was_out_of_reach_acts_once(
    order: Order, signed_in: Page
) -> None:
    signed_in.route("**/escalate/", losing_the_answer)

    dialog = press(signed_in, "escalate", "nobody answers")

    expect(dialog.locator(".result")).to_contain_text("The server did not answer")
    signed_in.unroute("**/escalate/")
    submit(dialog).click()
    expect(dialog).to_be_hidden()
    assert OperatorAction.objects.filter(action="escalate").count() == 1


def losing_the_answer(route: Route) -> None:
    route.fetch()
    route.abort()


@pytest.mark.once
def test_a_button_pressed_by_nobody_says_so_and_does_nothing(
    order: Order, signed_in: Page
) -> None:
    signed_in.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)

    dialog = press(signed_in, "escalate", "who am I?")

    expect(dialog.locator(".result")).to_contain_text("you are signed out")
    assert not OperatorAction.objects.exists()


def test_discarding_an_event_takes_it_off_the_list(signed_in: Page) -> None:
    placed = orders()
    opened(signed_in, "/events/?tab=parked")
    expect(signed_in.locator("#events tbody tr")).to_have_count(1)

    dialog = asked(signed_in, "discard", "sent by mistake", "#events button.danger")
    expect(dialog.locator(".subject")).to_contain_text("ListedOnExternal")
    submit(dialog).click()

    expect(signed_in.locator("#flash")).to_contain_text("Discarded")
    expect(signed_in.locator("#events .empty")).to_be_visible()
    expect(dialog).to_be_hidden()
    event = InboxEvent.objects.get(event_id=f"early {placed['early'].order_id}")
    assert event.verdict == "discarded"


@pytest.mark.once
def test_a_hidden_tab_rests_and_catches_up_when_it_is_shown(signed_in: Page) -> None:
    order, asked = waiting_order(), list[str]()
    signed_in.on("requestfinished", lambda request: asked.append(request.url))
    opened(signed_in, order)
    while sum("since=" in url for url in asked) < 2:  # once its socket is open
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
    went_on(order)
    signed_in.wait_for_timeout(700)
    asked_while_hidden = list(requests)

    signed_in.evaluate(
        "() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }"
    )

    current(signed_in, "Completed")
    assert asked_while_hidden == []
    assert requests


def test_a_server_that_refuses_is_not_silent(order: Order, signed_in: Page) -> None:
    dialog = asked(signed_in, "escalate", "because")
    answer, statuses = dialog.locator(".result"), iter((404, 413, 500))
    signed_in.route("**/escalate/", lambda route: route.fulfill(status=next(statuses)))
    for _ in range(3):
        with signed_in.expect_response("**/escalate/"):
            submit(dialog).click()

        expect(answer).to_contain_text("the server refused it")
        expect(answer).not_to_contain_text("did not answer")
        expect(dialog.locator("form[data-busy]")).to_have_count(0)
