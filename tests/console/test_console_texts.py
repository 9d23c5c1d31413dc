"""What the engine tells people: in English in the tables, and shown in the reader's language with names for steps."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from examples.order_listing.messages import Destination, ListedOnExternal
from examples.order_listing.orders import place_order
from orchestrator import send_event
from orchestrator.definition.codec import digest
from orchestrator.engine.change import incidents
from orchestrator.engine.change.incidents import normalize
from orchestrator.engine.operations import (
    assign_failures,
    cancel,
    escalate,
    mark_handled,
)
from orchestrator.engine.sql.batch import send
from orchestrator.exceptions import OperationRefused, StaleRevision, WorkerDied
from orchestrator.models import (
    BulkItem,
    FailureGroup,
    FailureMark,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.testing import pass_time, run
from orchestrator.text import Text, pack_text
from tests.console.test_api import Program
from tests.services.asking import asked as request_of
from tests.services.bulk import begun, frozen, worked_on
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.forms_of_actions import failed_order

pytestmark = pytest.mark.django_db

JAPANESE = {"Accept-Language": "ja"}
ENGLISH = "ListedOnExternal is not expected in step AwaitingExternalCreation"
SHOWN = "ListedOnExternal はステップ Awaiting external creation では想定されていません"


@pytest.fixture
def early(operator: User) -> ProcessInstance:
    """An order that waits for its creation, and got an event of a later step beyond all patience."""
    order = place_order(Destination.EXTERNAL, "50 MWh")
    run()
    event = ListedOnExternal(order.order_id)
    send_event(event, id="early", source="exchange", process_id=order.process_id)
    pass_time(seconds=70)
    return ProcessInstance.objects.get(pk=order.process_id)


def page(client: Client, address: str) -> str:
    """What a page says in Japanese."""
    return client.read(address, headers=JAPANESE).replace("<wbr>", "")


def refused(early: ProcessInstance) -> OperatorAction:
    """The audit row of an action whose page was too old."""
    with pytest.raises(StaleRevision):
        escalate(early.pk, request=request_of(expected_revision=0))
    return OperatorAction.objects.latest("pk")


MOVED = "The process has changed since the page was loaded"
MOVED_IN_JAPANESE = "ページの読み込み後にプロセスが変わりました"


# Kinds of texts


def test_the_tables_have_english_and_what_it_is_made_of(early: ProcessInstance) -> None:
    incident = Incident.objects.get(kind="unexpected_event")
    event = InboxEvent.objects.get(event_id="early")
    action = refused(early)

    assert incident.message == event.error == incident.said == ENGLISH
    assert incident.text == event.text
    assert incident.text == {
        "template": "%(type)s is not expected in step %(step)s",
        "values": {"type": "ListedOnExternal", "step": "AwaitingExternalCreation"},
        "code": "is_not_expected_in_step",
    }
    assert action.detail.startswith(MOVED)
    assert action.text is not None
    assert action.text["code"] == "process_has_changed_since_page"
    assert action.text["values"]["seen"] == "0"


def test_pages_speak_the_language(early: ProcessInstance, operating: Client) -> None:
    refused(early)
    cause = Incident.objects.get(kind="unexpected_event").fingerprint

    english = operating.read("/failures/")

    assert "not expected in step Awaiting external creation" in english
    assert "AwaitingExternalCreation" not in english
    of_it = f"/processes/{early.pk}/"
    for address in ("/failures/", f"/failures/{cause}/", "/events/", of_it):
        assert SHOWN in page(operating, address), address
    for address in ("/audit/", of_it):
        assert MOVED_IN_JAPANESE in page(operating, address)


def test_a_refusal_is_in_the_language_of_whoever_presses_and_kept_in_english(
    early: ProcessInstance, operating: Client
) -> None:
    form = {"key": uuid4().hex, "revision": 0, "reason": "because"}
    address = f"/processes/{early.pk}/escalate/"
    script = {**JAPANESE, "HX-Request": "true"}

    for _again in range(2):  # the second time it is read from the audit
        answer = operating.post(address, form, headers=script)
        assert answer.status_code == 409
        assert MOVED_IN_JAPANESE in answer.content.decode()

    assert OperatorAction.objects.get().detail.startswith(MOVED)


def test_why_a_button_is_off_is_in_the_readers_language(operating: Client) -> None:
    order = place_order(Destination.INTERNAL, "50 MWh")
    run()

    shown = page(operating, f"/processes/{order.process_id}/")

    assert "プロセスは終了しています" in shown
    assert "The process has ended" not in shown


def test_programs_get_a_code_with_texts(early: ProcessInstance, operator: User) -> None:
    program = Program(operator)
    address = f"/api/processes/{early.pk}/"

    answer = program.say(f"{address}escalate/", revision=0).json()
    found = program.get(address, headers=JAPANESE).json()

    code = "process_has_changed_since_page"
    assert (answer["error"], answer["code"]) == ("stale", code)
    assert SHOWN in [one["message"] for one in found["failures"]]
    assert found["refused"]["acknowledge"] == "エスカレーションされていません"


def test_the_admin_says_it_to_its_reader(early: ProcessInstance, admin: Client) -> None:
    incident = Incident.objects.get(kind="unexpected_event")
    same = {name: getattr(incident, name) for name in ("message", "text")}
    same |= dict.fromkeys(("first_at", "last_at"), timezone.now())
    group: dict[str, Any] = {"fingerprint": incident.fingerprint, "defaults": same}
    FailureGroup.objects.update_or_create(**group)

    for name in ("incident", "failuregroup"):
        said = page(admin, f"/admin/orchestrator/{name}/")
        assert "ListedOnExternal はステップ" in said, name


def test_an_export_has_the_text_as_it_is_stored_and_its_code(
    early: ProcessInstance, operating: Client
) -> None:
    action = refused(early)

    lines = operating.read("/audit/export.jsonl", headers=JAPANESE)

    assert action.detail in lines
    assert '"code": "process_has_changed_since_page"' in lines


def test_bulk_items_say_why_to_their_reader(operating: Client, operator: User) -> None:
    failed = failed_order()
    operation = frozen(begun(operator, {"status": "failed"}, 1))
    cancel(failed.pk, request=request_of())
    worked_on(operation)

    assert BulkItem.objects.get().detail.startswith(MOVED)
    assert MOVED_IN_JAPANESE in page(operating, f"/operations/{operation.pk}/")


def test_a_traceback_of_ours_is_told_in_a_line(operating: Client) -> None:
    failed = failed_order()
    died = WorkerDied("the worker died or was killed in each of %(number)s attempts", 3)
    rows = IssuedCommand.objects.filter(instance=failed, status="failed")
    rows.update(**incidents.error_columns(died))

    command = rows.get()
    assert command.error.startswith("orchestrator.exceptions.WorkerDied: ")
    assert command.said == f"WorkerDied: {died}"
    assert "WorkerDied: 3 回の試行" in page(operating, f"/processes/{failed.pk}/")


# Releases


@cases("text", None, {"sentence": 7}, pack_text(Text("there is no event %(key)s", 7)))
def test_what_a_release_of_before_or_of_later_has_written_is_shown_in_english(
    early: ProcessInstance, operating: Client, text: Any
) -> None:
    Incident.objects.filter(kind="unexpected_event").update(text=text)

    assert ENGLISH in page(operating, "/failures/")


def test_failures_of_one_cause_stay_one_group_whatever_it_is_worded(
    early: ProcessInstance, operating: Client, operator: User
) -> None:
    """A row of the release before, one of this and one of a rewording: one mark, one assignment, one link."""
    kind, now = Incident.Kind.UNEXPECTED_EVENT, timezone.now()
    incident = Incident.objects.get(kind=kind)
    parts = [incident.kind, early.name, early.step, "", "", normalize(ENGLISH)]
    assert incident.fingerprint == digest(parts), "as releases before hash it"
    Incident.objects.filter(kind=kind).update(text=None)
    mark_handled(incident.fingerprint, incident.pk, 7, request=request_of())
    assign_failures(incident.fingerprint, str(operator), request=request_of())
    mark = FailureMark.objects.get()

    now_said = "the step %(step)s of the process takes no %(type)s"
    was = "%(type)s is not expected in step %(step)s"
    anew = Text(now_said, early.step, "ListedOnExternal", was=was)
    send(incidents.open_incident(kind, anew, now, instance=early))

    rows = Incident.objects.filter(kind=kind)
    messages = rows.values_list("fingerprint", "message")
    assert set(messages) == {(mark.pk, ENGLISH), (mark.pk, str(anew))}
    shown = page(operating, f"/failures/{mark.pk}/")
    assert ENGLISH in shown
    assert str(anew).replace(early.step, "Awaiting external creation") in shown
    assert FailureMark.objects.get().owner == operator


def test_a_refusal_that_is_given_again_keeps_its_code(early: ProcessInstance) -> None:
    asked, codes = request_of(expected_revision=0), []
    for _again in range(2):
        with pytest.raises(OperationRefused) as caught:
            escalate(early.pk, request=asked)
        codes.append(caught.value.told.code)  # type: ignore[attr-defined]

    assert codes == ["process_has_changed_since_page"] * 2
