"""Two people at once, two clicks, and a page that was cut off: one effect, one row, and everybody is told what came."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from examples.order_listing.messages import RequestExternalCreation
from examples.order_listing.models import Order
from orchestrator import Answer, CommandContext
from orchestrator.models import BulkOperation, Incident, OperatorAction
from orchestrator.testing import replaced, run
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.fixtures import helpdesk
from tests.browser.orders import failed, went_on
from tests.browser.pressing import asked, current, opened, press, submit
from tests.services.bulk import begun, frozen
from tests.services.site import live_site

__all__ = ["helpdesk", "live_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
]

DONE, REFUSED = OperatorAction.Result.DONE, OperatorAction.Result.REFUSED


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
    return failed()[0]


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
    signed_in: Page, other: Page, order: Order, calls: Counter[str]
) -> None:
    dialogs = {}
    for name, page in (("operator", signed_in), ("colleague", other)):
        opened(page, order)
        dialogs[name] = asked(page, "retry", f"{name} has called them")

    pressed_together(*map(submit, dialogs.values()))

    won, lost = told_apart(dialogs)
    refusal = dialogs[lost].locator(".result [role=alert]")
    expect(refusal).to_contain_text(f"{won} did Retry at")
    expect(dialogs[lost].locator("textarea")).to_have_value(f"{lost} has called them")
    assert sorted(rows("retry")) == sorted([(won, DONE), (lost, REFUSED)])
    run()
    assert calls == {order.order_id: 1}


def test_two_people_retry_one_after_the_other_and_the_first_is_named_though_it_went_on(
    signed_in: Page, other: Page, order: Order, calls: Counter[str]
) -> None:
    for page in (signed_in, other):
        opened(page, order)
    late = asked(other, "retry", "called them")
    press(signed_in, "retry", "they are back")
    expect(signed_in.locator("#flash")).to_contain_text("Trying again")
    run()
    went_on(order)
    current(other, "Completed")

    submit(late).click()

    refusal = late.locator(".result [role=alert]")
    expect(refusal).to_contain_text("operator did Retry at")
    expect(late.locator("textarea")).to_have_value("called them")
    assert rows("retry") == [("operator", DONE), ("colleague", REFUSED)]
    assert calls == {order.order_id: 1}


def test_two_clicks_on_a_dialogs_button_have_one_effect_and_one_row(
    signed_in: Page, order: Order, calls: Counter[str]
) -> None:
    opened(signed_in, order)
    sent: list[str] = []
    signed_in.on(
        "request", lambda one: sent.append(one.url) if one.method == "POST" else None
    )
    dialog = asked(signed_in, "retry", "they are back")

    # Both in the same moment, before the first has been answered.
    submit(dialog).evaluate("button => { button.click(); button.click(); }")

    expect(dialog).to_be_hidden()
    expect(signed_in.locator("#flash")).to_contain_text("Trying again")
    assert len(sent) == 1
    assert rows("retry") == [("operator", DONE)]
    run()
    assert calls == {order.order_id: 1}


def test_a_page_that_was_cut_off_is_refused_with_what_moved_it_and_keeps_what_was_typed(
    signed_in: Page, order: Order, calls: Counter[str]
) -> None:
    opened(signed_in, order)
    signed_in.context.set_offline(True)
    went_on(order)
    dialog = press(signed_in, "retry", "they are back")
    result = dialog.locator(".result [role=alert]")
    expect(result).to_contain_text("The server did not answer")
    expect(signed_in.locator("#live[data-state=stale]")).to_be_visible()
    button = signed_in.locator("#retry-button")
    expect(button).not_to_have_attribute("aria-disabled", "true")
    assert not OperatorAction.objects.exists()

    signed_in.context.set_offline(False)
    submit(dialog).click()

    expect(result).to_contain_text("ListedOnInternal arrived at")
    expect(dialog.locator("textarea")).to_have_value("they are back")
    current(signed_in, "Completed")
    assert rows("retry") == [("operator", REFUSED)]
    assert calls == {}


# An operation on many


@pytest.fixture
def three_failed(transactional_db: None) -> str:
    """The cause of three failures."""
    failed(3)
    return str(Incident.objects.open().latest("pk").fingerprint)


@pytest.fixture
def operation(three_failed: str, operator: User) -> BulkOperation:
    """An operation on them, none of which is begun yet."""
    return frozen(begun(operator, {"cause": three_failed}, 3, selection="failures"))


def test_two_clicks_begin_one_operation(signed_in: Page, three_failed: str) -> None:
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
    return asked(pauses, "pause_bulk"), asked(cancels, "cancel_bulk")


def shown_as_cancelled(*pages: Page) -> None:
    for page in pages:
        expect(page.locator(".head .chip")).to_have_text("cancelled")
        expect(page.locator("#why")).to_have_text("cancelled by colleague")


def test_two_people_pause_and_cancel_an_operation_and_both_see_who_ended_it(
    signed_in: Page, other: Page, operation: BulkOperation
) -> None:
    pause, cancel = both_ask(signed_in, other, operation)
    submit(pause).click()
    expect(other.locator("#why")).to_have_text("paused by operator")

    submit(cancel).click()

    expect(other.locator("#flash")).to_contain_text("Cancelled.")
    shown_as_cancelled(signed_in, other)
    assert rows("pause_bulk") == [("operator", DONE)]
    assert rows("cancel_bulk") == [("colleague", DONE)]
    operation.refresh_from_db()
    assert operation.status == "cancelled"


def test_two_people_cancel_and_pause_an_operation_and_the_later_is_told(
    signed_in: Page, other: Page, operation: BulkOperation
) -> None:
    pause, cancel = both_ask(signed_in, other, operation)
    submit(cancel).click()
    expect(other.locator("#flash")).to_contain_text("Cancelled.")

    submit(pause).click()

    refusal = pause.locator(".result [role=alert]")
    expect(refusal).to_have_text("This operation is cancelled by colleague")
    shown_as_cancelled(signed_in, other)
    assert rows("cancel_bulk") == [("colleague", DONE)]
    assert rows("pause_bulk") == [("operator", REFUSED)]


def test_two_people_pause_and_cancel_an_operation_at_once_and_it_is_cancelled(
    signed_in: Page, other: Page, operation: BulkOperation
) -> None:
    pause, cancel = both_ask(signed_in, other, operation)

    pressed_together(submit(pause), submit(cancel))

    shown_as_cancelled(signed_in, other)
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
    signed_in: Page, other: Page
) -> None:
    process = inquiry()
    choices = {"operator": "accept", "colleague": "refuse"}
    dialogs = {}
    for name, page in (("operator", signed_in), ("colleague", other)):
        opened(page, process)
        button = f"[data-opens=decide-dialog][data-given={choices[name]}]"
        dialogs[name] = asked(page, "decide", f"{name} says so", button)

    pressed_together(*map(submit, dialogs.values()))

    won, lost = told_apart(dialogs)
    refusal = dialogs[lost].locator(".result [role=alert]")
    expect(refusal).to_contain_text(f"{won} did Decide at")
    expect(dialogs[lost].locator("textarea")).to_have_value(f"{lost} says so")
    late = dialogs[lost].page
    expect(late.locator("[data-opens=decide-dialog]")).to_have_count(0)
    assert sorted(rows("decide")) == sorted([(won, DONE), (lost, REFUSED)])
    decided = OperatorAction.objects.get(action="decide", result=DONE)
    assert decided.after is not None
    assert decided.after["decided"] == {"verdict": choices[won]}
    run()
    taken, left = ("reply", "escalate") if won == "operator" else ("escalate", "reply")
    steps = dict(process.step_runs.values_list("node", "status"))
    assert steps[taken] == "done"
    assert steps.get(left) in (None, "not_taken")
    expect(late.locator(f"#n_{taken}.is-done")).to_be_visible()
