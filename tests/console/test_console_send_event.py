"""S9.4: an event is sent by a form made from its class, after a look at what it would lead to; once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse

from orchestrator import registry, send_event
from orchestrator.definition import Event
from orchestrator.engine.operations import EventToSend, cancel, preview_targets, send
from orchestrator.exceptions import StaleRevision
from orchestrator.models import (
    BulkOperation,
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    Verdict,
)
from orchestrator.testing import run
from tests.apps.every_construct.processes import Inquiry
from tests.apps.process_managers.desk import underway as parcel
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import CountScan, Courier, ParcelOrdered
from tests.browser.samples import HARMFUL
from tests.conftest import of
from tests.services.asking import asked as request_of
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.doing import refused
from tests.services.pressing import hidden
from tests.services.reading import between, planted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

REASON = {"reason": "the scanner is down"}


def place(kind: str, **more: Any) -> str:
    return f"/events/send/?{urlencode({'type': kind, **more})}"


def form(page: str, **changed: Any) -> dict[str, Any]:
    """What the form of a page sends, with some fields filled in."""
    [id] = re.findall(r'name="event_id" value="([^"]*)"', page)
    return {**hidden(page), "event_id": unescape(id), **changed}


def from_console(**about: Any) -> InboxEvent:
    return InboxEvent.objects.get(source="console", **about)


def assert_nothing_sent() -> None:
    assert not InboxEvent.objects.filter(source="console").exists()


SCAN = {"field-parcel_id": "P-1", "field-place": "east"}


def asked(client: Client, kind: str, **given: Any) -> str:
    """The page after it was asked what an event would do."""
    page = client.read(place(kind))
    answer = client.post(place(kind), form(page, preview="1", **given))
    assert answer.status_code == 200
    return answer.content.decode()


def sent(client: Client, kind: str, **given: Any) -> HttpResponse:
    page = client.read(place(kind))
    return press(client, kind, form(page, **REASON, **given))


def press(client: Client, kind: str, given: dict[str, Any]) -> HttpResponse:
    return client.post(place(kind), given)  # type: ignore[return-value]


def text_of(page: str) -> str:
    """What the page says that an event would do."""
    part = between(page, 'id="preview"', "</section>")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split())


def stored() -> tuple[int, ...]:
    tables = (InboxEvent, Checkpoint, IssuedCommand, OperatorAction, BulkOperation)
    return tuple(table.objects.count() for table in tables)


def test_s9_4_the_form_has_a_field_for_each_of_the_class(admin: Client) -> None:
    page = admin.read(place("ParcelOrdered"))

    fields = re.findall(r'name="field-(\w+)"', page)
    assert fields == ["parcel_id", "courier", "note"]
    choices = re.findall(r'<option value="&quot;(\w+)&quot;"( selected)?>', page)
    assert choices == [("own", " selected"), ("partner", "")]
    assert '<option value="shipping">shipping</option>' in page


def test_s9_4_a_preview_writes_nothing(admin: Client, handler: SetHandler) -> None:
    process, called = parcel(), list[Any]()
    handler(CountScan, called.append)
    before = stored()

    page = asked(admin, "ParcelScanned", process=process.pk, **SCAN)

    for said in ("On the way would take it.", "It would issue CountScan", "place east"):
        assert said in text_of(page)
    assert stored() == before
    assert called == []
    given = form(page)
    seen = (given["revision"], given["seen"])
    assert seen == (str(process.revision), str(process.pk))
    assert "\neast</textarea>" in page


ARRIVES, UNEXPECTED = "from On the way to Delivered", "not expected in On the way"
WEIGHT = {"field-weight": "3"}
START = {"field-parcel_id": "P-9", "field-courier": '"own"'}


@cases(
    "kind, given, said",
    ("ParcelDelivered", {"process": "P-1", "field-parcel_id": "P-x"}, ARRIVES),
    ("ParcelDelivered", {"field-parcel_id": "P-1"}, ARRIVES),
    ("ParcelDelivered", {"field-parcel_id": "P-9"}, "takes it: it would be kept"),
    ("ParcelOrdered", START, "It would start one, which would then stand in Packing."),
    ("ParcelOrdered", START, "It would issue PackParcel"),
    ("ParcelPacked", {"process": "P-1", **WEIGHT}, f"{UNEXPECTED}: it would be kept"),
    ("ParcelPacked", {"process": str(uuid4()), **WEIGHT}, "none that takes it"),
)
def test_s9_4_a_preview_says_where_it_would_go(
    kind: str, given: dict[str, str], said: str, admin: Client
) -> None:
    parcel("P-1")

    assert said in text_of(asked(admin, kind, **given))


def test_s9_4_it_is_sent_and_audited(admin: Client, administrator: User) -> None:
    process = parcel()
    page = asked(admin, "ParcelScanned", process=process.pk, **SCAN)
    given = form(page, process=process.pk, **SCAN, **REASON)

    answer = admin.post(place("ParcelScanned"), given, follow=True)
    run()

    event, row = from_console(), OperatorAction.objects.get()
    assert (event.verdict, event.process_id) == (Verdict.MOVED, process.pk)
    assert event.event_id == given["event_id"]
    assert event.body == {"parcel_id": "P-1", "place": "east"}
    assert answer.redirect_chain == [(f"/events/?q={event.event_id}", 302)]
    assert "Sent." in answer.content.decode()
    assert (row.action, row.actor) == ("send", administrator)
    assert (row.reason, row.after["type"]) == ("the scanner is down", "ParcelScanned")
    assert (row.event_id, row.instance_id) == (event.pk, process.pk)
    assert "Send event" in admin.read("/audit/")


def test_s9_4_by_key_by_definition_and_as_a_start(admin: Client) -> None:
    process = parcel("P-1")
    sent(admin, "ParcelScanned", definition="shipping", process="P-1", **SCAN)
    start = {"field-parcel_id": "P-2", "field-courier": '"partner"'}
    sent(admin, "ParcelOrdered", definition="shipping", **start)
    run()

    scan = from_console(type="ParcelScanned")
    assert (scan.verdict, scan.process_id) == (Verdict.MOVED, process.pk)
    new = ProcessInstance.objects.get(correlation_key="P-2")
    assert (new.step, new.data["courier"]) == ("Packing", "partner")
    assert from_console(type="ParcelOrdered").verdict == Verdict.STARTED


def test_s9_4_a_corrected_copy_begins_with_the_fields_of_the_event(
    admin: Client, viewer: User
) -> None:
    told = ParcelOrdered("P-7", courier=Courier.PARTNER, note="two\nlines")
    number = send_event(told, id="lost", source="shop").number
    page = admin.read(place("ParcelOrdered", copy=number))
    given = form(page)
    assert re.fullmatch(r"lost-copy-[0-9a-f]{6}", given["event_id"])
    assert re.findall(r'value="&quot;(\w+)&quot;" selected', page) == ["partner"]
    assert ">\nP-7</textarea>" in page
    assert ">\ntwo\nlines</textarea>" in page
    # Not of another type, of nothing, and not for people who may not see data.
    for kind, copy in (("ParcelPacked", number), ("ParcelOrdered", 10**17)):
        assert "P-7" not in admin.read(place(kind, copy=copy))
    data = Permission.objects.get(codename="view_data_processinstance")
    viewer.user_permissions.remove(data)
    assert "P-7" not in of(viewer).read(place("ParcelOrdered", copy=number))


def test_s9_4_pressed_twice_it_is_sent_once(admin: Client) -> None:
    process = parcel()
    page = admin.read(place("ParcelScanned"))
    given = form(page, process=process.pk, **SCAN, **REASON)

    answers = [press(admin, "ParcelScanned", given) for _ in range(2)]
    run()

    assert [answer.status_code for answer in answers] == [302, 302]
    assert InboxEvent.objects.filter(source="console").count() == 1
    assert IssuedCommand.objects.filter(type="CountScan").count() == 1
    assert OperatorAction.objects.count() == 1


def test_s9_4_another_form_with_the_same_id_sends_nothing_new(admin: Client) -> None:
    same = {"process": parcel().pk, "event_id": "mine", **SCAN}
    sent(admin, "ParcelScanned", **same)
    again = sent(admin, "ParcelScanned", **same)
    other = sent(admin, "ParcelScanned", **{**same, "field-place": "west"})
    run()

    assert (again.status_code, other.status_code) == (302, 409)
    assert "with another content" in other.content.decode()
    event = from_console()
    assert (event.repeats, event.body["place"]) == (1, "east")
    said = OperatorAction.objects.filter(result="done").latest("pk").detail
    assert said == "it was sent before, and is not sent again"


def test_s9_4_it_is_refused_where_the_process_has_moved_since(admin: Client) -> None:
    process = parcel()
    page = asked(admin, "ParcelScanned", process=process.pk, **SCAN)
    body = {"place": "a", "parcel_id": ""}
    send_event("ParcelScanned", body, id="y", process_id=process.pk)
    run()
    given = form(page, process=process.pk, **SCAN, **REASON)
    answer = press(admin, "ParcelScanned", given)
    shown = answer.content.decode()

    assert answer.status_code == 409
    assert "has changed since" in shown
    assert_nothing_sent()
    assert OperatorAction.objects.get().result == "refused"
    # The page shows it as it is now, and may be pressed again.
    again = form(shown, process=process.pk, **SCAN, **REASON)
    assert again["key"] != given["key"]
    assert press(admin, "ParcelScanned", again).status_code == 302


def test_s9_4_it_is_refused_where_it_would_find_another_process(admin: Client) -> None:
    parcel("P-1"), parcel("P-2")
    page = asked(admin, "ParcelScanned", process="P-1", **SCAN)

    given = form(page, process="P-2", **SCAN, **REASON)
    answer = press(admin, "ParcelScanned", given)

    assert answer.status_code == 409
    assert "another process than the page showed" in answer.content.decode()
    assert_nothing_sent()


@cases(
    "kind, given, said",
    ("ParcelPacked", {"field-weight": "heavy"}, "Write a whole number."),
    ("ParcelPacked", {"field-weight": ""}, "This field is required."),
    ("ParcelOrdered", {"field-courier": '"pigeon"'}, "not one of the available"),
    ("ParcelScanned", {**SCAN, "reason": " "}, "Say why"),
    ("ParcelScanned", {**SCAN, "event_id": ""}, "This field is required."),
    ("ParcelScanned", {**SCAN, "definition": "nothing"}, "not one of the available"),
    ("ParcelScanned", {**SCAN, "process": "x" * 201}, "at most 200"),
    ("ParcelScanned", {**SCAN, "key": "none"}, "look at the fields"),
    ("ParcelScanned", {**SCAN, "revision": str(2**40)}, "look at the fields"),
)
def test_s9_4_what_is_wrong_stands_at_its_field_and_nothing_is_sent(
    kind: str, given: dict[str, str], said: str, admin: Client
) -> None:
    page = admin.read(place(kind))
    answer = press(admin, kind, form(page, **{**REASON, **given}))

    assert answer.status_code == 400
    assert said in unescape(answer.content.decode())
    assert stored() == (0,) * len(stored())


def test_s9_4_what_no_process_can_take_is_refused(administrator: User) -> None:
    process, ended = parcel(), parcel("P-2")
    body = {"parcel_id": "P-1", "place": "east"}
    cancel(ended.pk, request=request_of(actor=administrator))

    rows: tuple[tuple[str, dict[str, Any]], ...] = (
        ("has ended", {"process_id": ended.pk}),
        ("has ended", {"definition": "shipping", "key": "P-2"}),
        ("there is no process", {"process_id": uuid4()}),
        ("other takes no ParcelScanned", {"definition": "other"}),
        ("place: Input should be", {"body": {**body, "place": 5}}),
        ("at most", {"body": {**body, "place": "x" * 300_000}}),
        ("another process", {"process_id": process.pk, "seen": ended.pk}),
    )
    for said, more in rows:
        usual = {"type": "ParcelScanned", "body": body, "id": "e"}
        refused(said, send, EventToSend(**{**usual, **more}), actor=administrator)
    wanted = EventToSend("ParcelScanned", body, "e", process.pk)
    stale = {"actor": administrator, "expected_revision": 1}
    refused("", send, wanted, error=StaleRevision, **stale)
    assert_nothing_sent()


def test_s9_4_a_process_whose_code_is_gone_is_refused_with_the_reason(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, kind = parcel(), "ParcelScanned"
    scanned = registry.definitions["shipping", 1].events[kind]
    page = admin.read(place(kind))
    given = form(page, process=process.pk, **SCAN, **REASON)
    with monkeypatch.context() as patched:
        patched.delitem(registry.definitions, ("shipping", 1))
        admin.read(place(kind), status=404)
        patched.setattr(registry, "event_class", {kind: scanned}.__getitem__)
        seen = press(admin, kind, {**given, "preview": "1"})
        pressed = press(admin, kind, given)

    assert "It cannot be decided" in text_of(seen.content.decode())
    assert pressed.status_code == 409
    assert "no definition shipping version 1" in unescape(pressed.content.decode())
    assert_nothing_sent()


@cases("kind", "Nonsense", "x" * 5_000, "<script>alert(1)</script>")
def test_s9_4_a_type_nothing_knows_cannot_be_sent(kind: str, admin: Client) -> None:
    for answer in (admin.get(place(kind)), press(admin, kind, REASON)):
        assert answer.status_code == 404
        assert "it cannot be sent" in answer.content.decode()
        assert "<script>alert" not in answer.content.decode()


def test_s9_4_types_are_offered_and_looking_writes_nothing(admin: Client) -> None:
    before = stored()
    page = admin.read("/events/send/")

    for kind in ("ParcelOrdered", "LabelTorn", "OrderCreated"):
        assert re.search(rf"<option *>{kind}</option>", page)
    assert 'id="send"' not in page
    assert 'href="/events/send/"' in admin.read("/events/")
    admin.read(place("ParcelOrdered"))
    assert stored() == before


def test_s9_4_an_event_without_fields_is_sent_too(admin: Client) -> None:
    process = parcel()
    page = admin.read(place("LabelTorn", process=process.pk))
    assert "no fields" in page
    assert f'value="{process.pk}"' in page

    sent(admin, "LabelTorn", process=process.pk)

    assert from_console().body == {}


def test_s9_4_a_viewer_may_look_and_not_send(viewing: Client, viewer: User) -> None:
    kind, given = "ParcelScanned", {"process": parcel().pk, **SCAN}
    may = Permission.objects
    assert re.search(r'id="send-button"[^>]*disabled', viewing.read(place(kind)))
    assert "would take it" in text_of(asked(viewing, kind, **given))

    assert sent(viewing, kind, **given).status_code == 403
    assert_nothing_sent()
    viewer.user_permissions.add(may.get(codename="send_inboxevent"))
    assert sent(viewing, kind, **given).status_code == 302
    viewer.user_permissions.remove(may.get(codename="view_inboxevent"))
    viewing.read(place(kind), status=403)


def test_s9_4_a_workflow_that_waits_takes_it(admin: Client, helpdesk: None) -> None:
    kinds = sorted(Inquiry.events)
    assert kinds
    for kind in kinds:
        assert admin.get(place(kind)).status_code == 200
        assert [name for name, *_ in preview_targets(kind, {})] == ["helpdesk-inquiry"]


class RefusesItself(Event):
    amount: Decimal = Decimal(1)

    def __post_init__(self) -> None:
        if self.amount > 5:
            raise KeyError("hostile <b>")


@pytest.fixture
def hostile() -> Iterator[None]:
    """An event class of which reading may raise anything, known by its handler alone."""
    calls: list[Event] = []

    @registry.reacts_to(RefusesItself)
    def note(event: RefusesItself) -> None:
        calls.append(event)

    yield
    del registry.reactions["RefusesItself"]


def test_s9_4_a_class_that_raises_is_told_of(admin: Client, hostile: None) -> None:
    page = admin.read(place("RefusesItself"))
    for how in ({"preview": "1"}, {}):
        given = form(page, **REASON, **how, **{"field-amount": "6"})
        answer = press(admin, "RefusesItself", given)
        assert answer.status_code == 400
        assert "KeyError" in answer.content.decode()
        assert "hostile <b>" not in answer.content.decode()
    shown = text_of(asked(admin, "RefusesItself", **{"field-amount": "2"}))
    assert "No process knows events of this type." in shown
    assert "hostile.<locals>.note" in shown
    assert not InboxEvent.objects.exists()


@cases("text", *HARMFUL)
def test_s9_4_hostile_texts_are_texts(text: str, admin: Client) -> None:
    parcel()
    given = {"field-parcel_id": text, "field-place": text, "process": text[:200]}
    page = admin.read(place("ParcelScanned"))
    answer = press(admin, "ParcelScanned", form(page, preview="1", **given))

    assert answer.status_code in (200, 400)
    assert planted(answer.content.decode()) == []
