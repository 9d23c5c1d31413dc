"""The buttons' answers: stale pages, double presses, missing reasons, and the admin's way of asking."""

from typing import Any
from uuid import uuid4

import pytest

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.testing import run
from tests.services.cases import cases, words
from tests.services.client import Client

pytestmark = pytest.mark.django_db

FRAGMENTS = {"HX-Request": "true"}


@pytest.fixture
def process() -> ProcessInstance:
    """A process whose call to the exchange has failed."""
    order = place_order(Destination.BOTH, "50 MWh")
    run()
    return ProcessInstance.objects.get(pk=order.process_id)


def form(process: ProcessInstance, **changed: Any) -> dict[str, Any]:
    return {
        "key": uuid4().hex,
        "revision": process.revision,
        "reason": "because",
        **changed,
    }


def test_a_stale_page_is_refused_with_what_changed_and_the_page_as_it_is_now(
    process: ProcessInstance, operating: Client
) -> None:
    address = f"/processes/{process.pk}/escalate/"
    operating.post(address, form(process), headers=FRAGMENTS)

    answer = operating.post(address, form(process), headers=FRAGMENTS)

    assert answer.status_code == 409
    text = answer.content.decode()
    assert "The process has changed since the page was loaded" in text
    assert "operator did Escalate" in text
    assert f'data-revision="{process.revision + 1}"' in text
    process.refresh_from_db()
    assert process.escalation_level == 1


def test_the_same_press_twice_acts_once_and_is_answered_alike(
    process: ProcessInstance, operating: Client
) -> None:
    address, pressed = f"/processes/{process.pk}/escalate/", form(process)

    answers = [operating.post(address, pressed, headers=FRAGMENTS) for _ in range(3)]

    assert {answer.status_code for answer in answers} == {200}
    process.refresh_from_db()
    assert process.escalation_level == 1
    assert OperatorAction.objects.count() == 1


@cases(
    "wrong",
    {"reason": ""},
    {"reason": "  "},
    {"key": "no"},
    {"key": ""},
    {"revision": "-1"},
    {"revision": str(2**31)},
    {"revision": str(2**63)},
)
def test_an_incomplete_form_is_refused_and_does_nothing(
    wrong: dict[str, str], process: ProcessInstance, operating: Client
) -> None:
    answer = operating.post(
        f"/processes/{process.pk}/escalate/", form(process, **wrong), headers=FRAGMENTS
    )

    assert answer.status_code == 400
    assert not OperatorAction.objects.exists()


def test_a_browser_without_scripts_is_led_back_to_the_page(
    process: ProcessInstance, operating: Client
) -> None:
    answer = operating.post(
        f"/processes/{process.pk}/escalate/", form(process), follow=True
    )

    assert answer.redirect_chain == [(f"/processes/{process.pk}/", 302)]
    assert "Escalated." in answer.content.decode()


def test_a_browser_without_scripts_reads_why_it_was_refused(
    process: ProcessInstance, operating: Client
) -> None:
    place = f"/processes/{process.pk}/escalate/"
    answer = operating.post(place, form(process, revision=99))

    assert answer.status_code == 409
    assert "the page showed 99" in answer.content.decode()


def test_the_admin_asks_for_a_reason_and_then_acts_on_every_chosen_row(
    process: ProcessInstance, admin: Client
) -> None:
    address = "/admin/orchestrator/processinstance/"
    chosen = {"action": "escalate", "_selected_action": [str(process.pk)]}

    asked = admin.post(address, chosen)
    more = {"key": uuid4().hex, f"revision-{process.pk}": process.revision}
    done = admin.post(address, {**chosen, **more, "reason": "checked"}, follow=True)

    assert 'name="reason"' in asked.content.decode()
    assert "done" in done.content.decode()
    process.refresh_from_db()
    assert process.escalation_level == 1
    assert OperatorAction.objects.get().reason == "checked"


@cases(
    "table",
    *words(
        """definition processinstance inboxevent steprun checkpoint issuedcommand incident
        operatoraction bulkoperation bulkitem failuremark worker"""
    ),
)
def test_the_admin_shows_every_table_and_changes_none(
    table: str, process: ProcessInstance, admin: Client
) -> None:
    address = f"/admin/orchestrator/{table}/"

    assert admin.get(address, {"q": "A-1"}).status_code == 200
    assert admin.get(f"{address}add/").status_code == 403


def test_a_command_that_its_handler_gave_up_is_not_said_to_have_no_answer(
    process: ProcessInstance, operating: Client
) -> None:
    page = operating.read(f"/processes/{process.pk}/")

    ledger = page.partition('id="ledger"')[2]
    assert "Not carried out" in ledger
    assert "No answer" not in ledger


@cases("place", "http://[", "//[::1", "\x00", "é", "x" * 5_000)
def test_an_address_that_is_none_is_the_place_of_no_form(
    place: str, process: ProcessInstance, operating: Client
) -> None:
    """Also a stranger's script may say where it is."""
    headers = {**FRAGMENTS, "HX-Current-URL": place}
    path = f"/processes/{process.pk}/escalate/"

    answer = operating.post(path, form(process), headers=headers)

    assert answer.status_code == 200
    assert str(process.pk) in answer.content.decode()
