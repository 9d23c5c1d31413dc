"""Two people at once, two clicks, and a page that was cut off: one effect, one row, and everybody is told what came."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, Page, expect

from examples.order_listing.messages import Destination, RequestExternalCreation
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from orchestrator import Answer, CommandContext, start_process
from orchestrator.engine.drain import drain
from orchestrator.models import (
    BulkOperation,
    Incident,
    OperatorAction,
    StepRun,
)
from orchestrator.testing import replaced
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.browser.conftest import live, opened_by
from tests.browser.orders import WHAT, created_outside
from tests.conftest import OPERATOR_MAY, person
from tests.services.bulk import begun, frozen
from tests.services.site import Site, live_site

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
]

DONE, REFUSED = OperatorAction.Result.DONE, OperatorAction.Result.REFUSED


@pytest.fixture
def colleague(signed_in: Page, browser: Browser, live_site: Site) -> Iterator[Page]:
    """The page of a second operator, in a browser profile of their own."""
    with opened_by(browser, live_site, person("colleague", *OPERATOR_MAY)) as page:
        yield page


@pytest.fixture
def calls() -> Iterator[Counter[str]]:
    """How often the exchange, which is back, was called for each order."""
    made: Counter[str] = Counter()

    def counted(command: RequestExternalCreation, context: CommandContext) -> Answer:
        made[command.order_id] += 1
        return Answer("HTTP 202")

    with replaced("RequestExternalCreation", counted):
        yield made


@pytest.fixture
def order(transactional_db: None) -> Order:
    """An order whose command has failed."""
    order = place_order(Destination.BOTH, WHAT)
    drain()
    return order


def opened(page: Page, address: str) -> None:
    page.goto(address)
    live(page)


def asked(page: Page, button: str, action: str, reason: str = "") -> Locator:
    """Open a dialog and write the reason; what sends it is not pressed yet."""
    page.click(button)
    dialog = page.locator(f"#{action}-dialog")
    expect(dialog).to_be_visible()
    if reason:
        dialog.locator("textarea[name=reason]").fill(reason)
    return dialog


def submit(dialog: Locator) -> Locator:
    return dialog.locator("button[type=submit]")


def pressed_together(*buttons: Locator) -> None:
    """Have several pages press at the same moment."""
    at = (time.time() + 1.0) * 1000
    for button in buttons:
        button.evaluate(
            "(button, at) => { setTimeout(() => button.click(), at - Date.now()); }", at
        )


def told_apart(dialogs: dict[str, Locator]) -> tuple[str, str]:
    """Whose press counted and who was refused, as soon as both have been answered."""
    refused: list[str] = []
    for name, dialog in dialogs.items():
        refusal = dialog.locator(".result [data-refused]")
        expect(refusal.or_(dialog.page.locator("#flash .good"))).to_be_visible()
        refused += [name] * refusal.count()
    [lost] = refused
    [won] = set(dialogs) - {lost}
    expect(dialogs[won]).to_be_hidden()
    expect(dialogs[lost]).to_be_visible()
    return won, lost


def rows(action: str) -> list[tuple[str, str]]:
    """The audit rows of an action: by whom, and what came of it."""
    found = OperatorAction.objects.filter(action=action).order_by("pk")
    return [(row.actor_name, str(row.result)) for row in found]


def test_two_people_retry_one_process_at_once_and_the_later_is_told_who_did(
    signed_in: Page, colleague: Page, order: Order, calls: Counter[str]
) -> None:
    dialogs = {}
    for name, page in (("operator", signed_in), ("colleague", colleague)):
        opened(page, f"/processes/{order.process_id}/")
        dialogs[name] = asked(page, "#retry-button", "retry", f"{name} has called them")

    pressed_together(*map(submit, dialogs.values()))

    won, lost = told_apart(dialogs)
    refusal = dialogs[lost].locator(".result [role=alert]")
    expect(refusal).to_contain_text(f"{won} did Retry at")
    expect(dialogs[lost].locator("textarea")).to_have_value(f"{lost} has called them")
    assert sorted(rows("retry")) == sorted([(won, DONE), (lost, REFUSED)])
    while drain():
        pass
    assert calls == {order.order_id: 1}


def test_two_people_retry_one_after_the_other_and_the_first_is_named_though_it_went_on(
    signed_in: Page, colleague: Page, order: Order, calls: Counter[str]
) -> None:
    for page in (signed_in, colleague):
        opened(page, f"/processes/{order.process_id}/")
    late = asked(colleague, "#retry-button", "retry", "called them")
    submit(asked(signed_in, "#retry-button", "retry", "they are back")).click()
    expect(signed_in.locator("#flash")).to_contain_text("Trying again")
    drain()
    created_outside(order)
    while drain():
        pass
    expect(colleague.locator("#n_Completed.is-current")).to_be_visible()

    submit(late).click()

    refusal = late.locator(".result [role=alert]")
    expect(refusal).to_contain_text("operator did Retry at")
    expect(late.locator("textarea")).to_have_value("called them")
    assert rows("retry") == [("operator", DONE), ("colleague", REFUSED)]
    assert calls == {order.order_id: 1}


def test_two_clicks_on_a_dialogs_button_have_one_effect_and_one_row(
    signed_in: Page, order: Order, calls: Counter[str]
) -> None:
    opened(signed_in, f"/processes/{order.process_id}/")
    sent: list[str] = []
    signed_in.on(
        "request", lambda one: sent.append(one.url) if one.method == "POST" else None
    )
    dialog = asked(signed_in, "#retry-button", "retry", "they are back")

    submit(dialog).dblclick()

    expect(dialog).to_be_hidden()
    expect(signed_in.locator("#flash")).to_contain_text("Trying again")
    assert len(sent) == 1
    assert rows("retry") == [("operator", DONE)]
    while drain():
        pass
    assert calls == {order.order_id: 1}


def test_a_page_that_was_cut_off_is_refused_with_what_moved_it_and_keeps_what_was_typed(
    signed_in: Page, order: Order, calls: Counter[str]
) -> None:
    opened(signed_in, f"/processes/{order.process_id}/")
    signed_in.context.set_offline(True)
    created_outside(order)
    while drain():
        pass
    dialog = asked(signed_in, "#retry-button", "retry", "they are back")
    submit(dialog).click()
    result = dialog.locator(".result [role=alert]")
    expect(result).to_contain_text("The server did not answer")
    expect(signed_in.locator("#live[data-state=stale]")).to_be_visible()
    expect(signed_in.locator("#retry-button")).not_to_have_attribute(
        "aria-disabled", "true"
    )
    assert not OperatorAction.objects.exists()

    signed_in.context.set_offline(False)
    submit(dialog).click()

    expect(result).to_contain_text("ListedOnInternal arrived at")
    expect(dialog.locator("textarea")).to_have_value("they are back")
    expect(signed_in.locator("#n_Completed.is-current")).to_be_visible()
    assert rows("retry") == [("operator", REFUSED)]
    assert calls == {}


# An operation on many


@pytest.fixture
def three_failed(transactional_db: None) -> str:
    """The cause of three failures."""
    for _ in range(3):
        place_order(Destination.BOTH, WHAT)
    drain()
    return str(Incident.objects.open().latest("pk").fingerprint)


@pytest.fixture
def operation(three_failed: str, operator: User) -> BulkOperation:
    """An operation on them, none of which is begun yet."""
    return frozen(begun(operator, {"cause": three_failed}, 3, selection="failures"))


def test_two_clicks_begin_one_operation_on_many(
    signed_in: Page, three_failed: str
) -> None:
    opened(signed_in, f"/operations/begin/?cause={three_failed}&action=retry")
    signed_in.fill("#begin textarea[name=reason]", "they are back")

    signed_in.locator("#begin-button").dblclick()

    signed_in.wait_for_url(re.compile(r"/operations/[0-9a-f-]{36}/"))
    operation = BulkOperation.objects.get()
    assert signed_in.url.endswith(f"/operations/{operation.pk}/")
    assert operation.shown == 3
    assert rows("start_bulk") == [("operator", DONE)]


def both_ask(
    pauses: Page, cancels: Page, operation: BulkOperation
) -> tuple[Locator, Locator]:
    """One is about to pause the operation, the other to cancel it."""
    for page in (pauses, cancels):
        opened(page, f"/operations/{operation.pk}/")
    pause = asked(pauses, "#pause_bulk-button", "pause_bulk")
    return pause, asked(cancels, "#cancel_bulk-button", "cancel_bulk")


def shown_as_cancelled(*pages: Page) -> None:
    for page in pages:
        expect(page.locator(".head .chip")).to_have_text("cancelled")
        expect(page.locator("#why")).to_have_text("cancelled by colleague")


def test_two_people_pause_and_cancel_an_operation_and_both_see_who_ended_it(
    signed_in: Page, colleague: Page, operation: BulkOperation
) -> None:
    pause, cancel = both_ask(signed_in, colleague, operation)
    submit(pause).click()
    expect(colleague.locator("#why")).to_have_text("paused by operator")

    submit(cancel).click()

    expect(colleague.locator("#flash")).to_contain_text("Cancelled.")
    shown_as_cancelled(signed_in, colleague)
    assert rows("pause_bulk") == [("operator", DONE)]
    assert rows("cancel_bulk") == [("colleague", DONE)]
    operation.refresh_from_db()
    assert operation.status == "cancelled"


def test_two_people_cancel_and_pause_an_operation_and_the_later_is_told(
    signed_in: Page, colleague: Page, operation: BulkOperation
) -> None:
    pause, cancel = both_ask(signed_in, colleague, operation)
    submit(cancel).click()
    expect(colleague.locator("#flash")).to_contain_text("Cancelled.")

    submit(pause).click()

    refusal = pause.locator(".result [role=alert]")
    expect(refusal).to_have_text("This operation is cancelled by colleague")
    shown_as_cancelled(signed_in, colleague)
    assert rows("cancel_bulk") == [("colleague", DONE)]
    assert rows("pause_bulk") == [("operator", REFUSED)]


def test_two_people_pause_and_cancel_an_operation_at_once_and_it_is_cancelled(
    signed_in: Page, colleague: Page, operation: BulkOperation
) -> None:
    pause, cancel = both_ask(signed_in, colleague, operation)

    pressed_together(submit(pause), submit(cancel))

    shown_as_cancelled(signed_in, colleague)
    expect(cancel).to_be_hidden()
    refused = pause.locator(".result [data-refused]")
    expect(refused.or_(signed_in.locator("#flash .good"))).to_be_visible()
    assert rows("cancel_bulk") == [("colleague", DONE)]
    paused = REFUSED if refused.count() else DONE
    assert rows("pause_bulk") == [("operator", paused)]
    operation.refresh_from_db()
    assert operation.status == "cancelled"


# A decision


def test_two_people_decide_differently_at_once_and_the_first_counts(
    signed_in: Page, colleague: Page
) -> None:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    drain()
    process = UUID(str(receipt.process_id))
    choices = {"operator": "accept", "colleague": "refuse"}
    dialogs = {}
    for name, page in (("operator", signed_in), ("colleague", colleague)):
        opened(page, f"/processes/{process}/")
        button = f"[data-opens=decide-dialog][data-given={choices[name]}]"
        dialogs[name] = asked(page, button, "decide", f"{name} says so")

    pressed_together(*map(submit, dialogs.values()))

    won, lost = told_apart(dialogs)
    refusal = dialogs[lost].locator(".result [role=alert]")
    expect(refusal).to_contain_text(f"{won} did Decide at")
    expect(dialogs[lost].locator("textarea")).to_have_value(f"{lost} says so")
    other = dialogs[lost].page
    expect(other.locator("[data-opens=decide-dialog]")).to_have_count(0)
    assert sorted(rows("decide")) == sorted([(won, DONE), (lost, REFUSED)])
    decided = OperatorAction.objects.get(action="decide", result=DONE)
    assert decided.after is not None
    assert decided.after["decided"] == {"verdict": choices[won]}
    while drain():
        pass
    taken, left = ("reply", "escalate") if won == "operator" else ("escalate", "reply")
    steps = dict(StepRun.objects.filter(instance=process).values_list("node", "status"))
    assert steps[taken] == "done"
    assert steps.get(left) in (None, "not_taken")
    expect(other.locator(f"#n_{taken}.is-done")).to_be_visible()
