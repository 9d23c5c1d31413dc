"""The buttons' answers: stale pages, double presses, missing reasons, and the admin's way of asking."""

from typing import Any
from uuid import uuid4

import pytest

from orchestrator.models import OperatorAction, ProcessInstance
from tests.services.cases import cases, words
from tests.services.client import Client, Read
from tests.services.placing import placed
from tests.services.reading import BY_SCRIPT

pytestmark = pytest.mark.django_db


@pytest.fixture
def process() -> ProcessInstance:
    """A process whose call to the exchange has failed."""
    return placed()


def form(process: ProcessInstance, **changed: Any) -> dict[str, Any]:
    said = {"key": uuid4().hex, "revision": process.revision, "reason": "because"}
    return {**said, **changed}


def escalated(
    client: Client, process: ProcessInstance, given: dict[str, Any], **more: Any
) -> Any:
    """The answer to the button that escalates."""
    return client.post(f"/processes/{process.pk}/escalate/", given, **more)


def test_a_stale_page_is_refused_with_what_changed_and_the_page_as_it_is_now(
    process: ProcessInstance, operating: Client
) -> None:
    _, answer = (
        escalated(operating, process, form(process), headers=BY_SCRIPT)
        for _ in range(2)
    )

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
    pressed = form(process)
    for _ in range(3):
        answer = escalated(operating, process, pressed, headers=BY_SCRIPT)
        assert answer.status_code == 200

    process.refresh_from_db()
    assert process.escalation_level == 1
    assert OperatorAction.objects.count() == 1


@cases(
    "wrong",
    *({"reason": text} for text in ("", "  ")),
    *({"key": text} for text in ("no", "")),
    *({"revision": text} for text in ("-1", f"{2**31}", f"{2**63}")),
)
def test_an_incomplete_form_is_refused_and_does_nothing(
    wrong: dict[str, str], process: ProcessInstance, operating: Client
) -> None:
    given = form(process, **wrong)
    answer = escalated(operating, process, given, headers=BY_SCRIPT)

    assert answer.status_code == 400
    assert not OperatorAction.objects.exists()


def test_a_browser_without_scripts_reads_why_it_was_refused(
    process: ProcessInstance, operating: Client
) -> None:
    refused = escalated(operating, process, form(process, revision=99))
    answer = escalated(operating, process, form(process), follow=True)

    assert refused.status_code == 409
    assert "the page showed 99" in refused.content.decode()
    assert answer.redirect_chain == [(f"/processes/{process.pk}/", 302)]
    assert "Escalated." in answer.content.decode()


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
    process: ProcessInstance, page_of: Read
) -> None:
    ledger = page_of(process).partition('id="history"')[2]
    assert "Not carried out" in ledger
    assert "No answer" not in ledger


@cases("place", "http://[", "//[::1", "\x00", "é", "x" * 5_000)
def test_an_address_that_is_none_is_the_place_of_no_form(
    place: str, process: ProcessInstance, operating: Client
) -> None:
    """Also a stranger's script may say where it is."""
    headers = {**BY_SCRIPT, "HX-Current-URL": place}

    answer = escalated(operating, process, form(process), headers=headers)

    assert answer.status_code == 200
    assert str(process.pk) in answer.content.decode()
