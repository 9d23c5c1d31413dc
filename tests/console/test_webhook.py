"""The signed door for events: what is taken, what is refused, and that a refusal leaves nothing behind."""

import json
from datetime import timedelta
from http.client import HTTPConnection
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from pytest_django import Settings
from uuid6 import uuid7

from orchestrator import Receipt
from orchestrator.models import InboxEvent, IssuedCommand
from orchestrator.webhooks import views
from orchestrator.webhooks.body import PostedEvents
from orchestrator.webhooks.views import store_events
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.exchange import headers
from tests.services.site import Site

pytestmark = pytest.mark.django_db

DOOR = "/hooks/exchange/"
OTHER_KEY = "whsec_YW5vdGhlciBrZXkgZm9yIHRoZSB0ZXN0cywgYWxzbyBsb25n"
FACTS = {"order_id": "EX-1", "external_id": "EX-1", "description": "10 MWh base load"}
OTHER_FACTS = {**FACTS, "external_id": "EX-2"}
LARGEST = 256 * 1024
"""Bytes of a body."""


def message(**changes: object) -> bytes:
    event = {"type": "ExternalOrderCreated", "data": FACTS, **changes}
    return json.dumps(event).encode()


def with_data(text: str) -> bytes:
    """A message whose data are written so."""
    return f'{{"type": "ExternalOrderCreated", "data": {text}}}'.encode()


def post(
    body: bytes, *, door: str = DOOR, about: Any = (), **signed: Any
) -> HttpResponse:
    return send(body, headers(body, **signed) | dict(about), door=door)


def send(
    body: bytes, signature: dict[str, str], door: str = DOOR, **more: Any
) -> HttpResponse:
    more = {"content_type": "application/json", **more}
    client = Client(enforce_csrf_checks=True)
    return client.post(door, body, headers=signature, **more)  # type: ignore[return-value]


def assert_refused(
    answer: HttpResponse, status: int, error: str, says: str = "", **place: int
) -> None:
    """It says so, and where in a list, and has stored nothing."""
    told = json.loads(answer.content)
    assert says in told.pop("detail")
    assert (answer.status_code, told) == (status, {"error": error, **place})
    assert not InboxEvent.objects.exists()
    assert not IssuedCommand.objects.exists()


def assert_unsigned(answer: HttpResponse, says: str = "") -> None:
    assert_refused(answer, 401, "bad_signature", says)


def listed(*ids: str, **changes: object) -> bytes:
    """A list of the same facts under these ids; the changes are of the last one."""
    common = {"type": "ExternalOrderCreated", "data": FACTS}
    events: list[dict[str, object]] = [{**common, "id": id} for id in ids]
    events[-1] |= changes
    return json.dumps(events).encode()


def answered(response: HttpResponse) -> tuple[int, Any]:
    return response.status_code, json.loads(response.content)


# What is taken


def test_a_signed_event_is_stored_and_acknowledged_with_a_receipt() -> None:
    process_id = uuid7()

    response = post(message(process_id=str(process_id)))

    event = InboxEvent.objects.get()
    assert answered(response) == (202, {"receipt": event.pk, "id": "msg_1"})
    assert (event.source, event.event_id) == ("exchange", "msg_1")
    assert (event.type, event.body) == ("ExternalOrderCreated", FACTS)
    assert event.process_id == process_id


def test_an_event_may_name_a_correlation_key_or_have_it_in_its_data() -> None:
    rejected = {"type": "ExternalOrderRejected", "data": {"reason": "no"}}
    assert post(message(**rejected, correlation_key="O-1")).status_code == 202
    assert post(message(), id="msg_2").status_code == 202

    named, found = InboxEvent.objects.order_by("pk")
    assert (named.process_id, named.correlation_key) == (None, "O-1")
    found_by = (found.process_id, found.target, found.correlation_key)
    assert found_by == (None, "order-listing", "EX-1")


@cases("age", timedelta(), timedelta(minutes=2))
def test_a_replay_gets_the_same_receipt_and_stores_nothing(age: timedelta) -> None:
    """Also one that was signed anew."""
    first, second = post(message(), age=age), post(message())

    assert (first.status_code, second.status_code) == (202, 200)
    assert first.content == second.content
    assert InboxEvent.objects.get().repeats == 1


def test_another_body_under_the_same_id_is_a_conflict() -> None:
    post(message())

    status, told = answered(post(message(data=OTHER_FACTS)))

    assert (status, told["error"]) == (409, "conflicting_event")
    assert InboxEvent.objects.get().body == FACTS


def test_a_list_of_events_is_stored_in_its_order_each_under_an_id_of_its_own() -> None:
    """And it may bring again what came before."""
    response = post(listed("b", "a", "c"))

    events = list(InboxEvent.objects.order_by("id"))
    assert [event.event_id for event in events] == ["b", "a", "c"]
    receipts = [{"receipt": event.pk, "id": event.event_id} for event in events]
    assert answered(response) == (202, {"id": "msg_1", "receipts": receipts})
    again = [post(listed("c", "d")).status_code for _ in range(2)]
    assert (again, InboxEvent.objects.count()) == ([202, 200], 4)


@pytest.mark.django_db(transaction=True)
def test_it_has_transactions_of_its_own_in_a_project_that_makes_one_of_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within: list[bool] = []

    def seen(posted: PostedEvents) -> list[Receipt]:
        within.append(connection.in_atomic_block)
        return store_events(posted)

    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    monkeypatch.setattr(views, "store_events", seen)

    assert post(listed("1", "2")).status_code == 202
    assert within == [False]


def test_while_a_key_is_replaced_both_are_good_and_then_the_old_one_is_refused(
    settings: Settings,
) -> None:
    [old] = settings.WEBHOOK_SOURCES["exchange"]
    settings.WEBHOOK_SOURCES = {"exchange": [OTHER_KEY]}
    assert_unsigned(post(message(), key=old))

    settings.WEBHOOK_SOURCES = {"exchange": [OTHER_KEY, old]}
    answers = [post(message(), key=key, id=key) for key in (OTHER_KEY, old)]
    assert [answer.status_code for answer in answers] == [202, 202]


def test_a_message_may_carry_signatures_of_several_keys() -> None:
    signature = headers(message())
    other = headers(message(), key=OTHER_KEY)["webhook-signature"]
    several = f"v1a,bm90aGluZw== {other} {signature['webhook-signature']}"

    answer = post(message(), about={"webhook-signature": several})
    assert answer.status_code == 202


# Who is refused


@cases("name", "webhook-id", "webhook-timestamp", "webhook-signature")
def test_a_missing_header_is_named(name: str) -> None:
    signature = headers(message())
    del signature[name]

    assert_unsigned(send(message(), signature), f"send the header {name}")


@cases(
    "name, value",
    *(("signature", value) for value in words("v1, v1,AAAA v1 nonsense v1,ü v2,AAAA")),
    *(("signature", value) for value in (",,,,", "v1,%%%%", " ")),
    *(("timestamp", value) for value in words("yesterday NaN inf -1 1e400")),
)
def test_a_signature_or_a_time_that_is_none_is_refused(name: str, value: str) -> None:
    assert_unsigned(post(message(), about={f"webhook-{name}": value}))


@cases("name", "webhook-id", "webhook-timestamp")
def test_an_id_or_a_time_other_than_the_signed_one_is_refused(name: str) -> None:
    other = headers(message(), id="msg_2", age=timedelta(minutes=1))
    assert_unsigned(post(message(), about={name: other[name]}))


@cases("minutes, says", (6, "too old"), (-6, "too new"))
def test_a_message_from_another_time_is_refused(minutes: int, says: str) -> None:
    assert_unsigned(post(message(), age=timedelta(minutes=minutes)), says)


@cases(
    "body, signed, says",
    (message().replace(b"10 MWh", b"90 MWh"), message(), ""),
    (b'{"a": "\xff"}', b"{}", "cannot be read"),
    (message(), b"", "webhook-id"),
)
def test_an_unsigned_body_is_refused(body: bytes, signed: bytes, says: str) -> None:
    assert_unsigned(send(body, headers(signed) if signed else {}), says)


@cases("source", "bank", "EXCHANGE", "exchange%00", "a.b")
def test_an_unknown_source_looks_like_an_address_that_is_not_there(source: str) -> None:
    assert_refused(post(message(), door=f"/hooks/{source}/"), 404, "not_found")


def test_a_source_without_keys_is_unknown(settings: Settings) -> None:
    signature = headers(message())
    settings.WEBHOOK_SOURCES = {"exchange": []}

    assert_refused(send(message(), signature), 404, "not_found")


def test_only_a_post_is_taken() -> None:
    assert_refused(Client().get(DOOR), 405, "method_not_allowed")  # type: ignore[arg-type]


# What is refused


@cases(
    "body, says",
    (b" ", "not JSON: Expecting value"),
    (with_data('{"price": NaN}'), "NaN is not a JSON number"),
    (with_data('{"price": 1e999}'), "too large"),
    (b'{"type": "A", "type": "ExternalOrderCreated", "data": {}}', "occurs twice"),
    (with_data(r'{"order_id": "a\u0000b"}'), "data.order_id: text must not"),
)
def test_what_is_not_strict_json_is_refused(body: bytes, says: str) -> None:
    assert_refused(post(body), 400, "not_json", says)


@cases(
    "body, says",
    (with_data("[" * 1_000 + "]" * 1_000), "nested deeper than 64 levels"),
    (json.dumps({f"k{n}": n for n in range(5_001)}).encode(), "more than 5,000 keys"),
    (json.dumps([{"id": str(n)} for n in range(1_001)]).encode(), "1,000 events"),
    (message(note="x" * 1_000_000), f"at most {LARGEST} bytes"),
    (message().ljust(LARGEST + 1), ""),
)
def test_what_is_too_large_is_not_called_no_json(body: bytes, says: str) -> None:
    assert_refused(post(body), 413, "too_large", says)


@cases(
    "body, says",
    (b"[7]", "send an object"),
    (b"null", "send an object"),
    (b"[]", "no event"),
    (b"[%s]" % message(), "id"),
    (b"{}", "type"),
    (message(type=5), "type"),
    (message(note="hello"), "note"),
    (message(process_id="O-1"), "process_id"),
    (message(process_id=5), "process_id"),
    (message(correlation_key=None), "correlation_key"),
    (message(correlation_key="k" * 201), "correlation key"),
    (message(data=[]), "data"),
    (message(data={}), "data.order_id"),
    (message(data={"order_id": "EX-1"}), "data.external_id"),
    (message(data={**FACTS, "price": 5}), "data.price"),
    (message(data={**FACTS, "order_id": 5}), "data.order_id"),
    (message(data={**FACTS, "order_id": None}), "data.order_id"),
)
def test_a_message_of_another_form_is_refused_with_the_path_of_the_mistake(
    body: bytes, says: str
) -> None:
    place = {"place": 0} if body.startswith((b"[7", b"[{")) else {}
    assert_refused(post(body), 422, "invalid_message", says, **place)


@cases("kind", "OrderEaten", "", "__class__", "ListOnInternal", "O" * 10_000)
def test_an_event_type_that_nobody_knows_is_refused(kind: str) -> None:
    assert_refused(post(message(type=kind)), 422, "unknown_event_type")


@cases("id", "x" * 201, "two\twords")
def test_an_id_that_the_inbox_cannot_keep_is_refused(id: str) -> None:
    assert_refused(post(message(), id=id), 422, "invalid_message", "id")


@cases("length", "9" * 5_000, "-1", "many", "1_000")
def test_a_length_that_is_none_is_refused(length: str) -> None:
    answer = send(message(), headers(message()), CONTENT_LENGTH=length)

    assert_refused(answer, 413, "too_large", "say how many")


def test_the_largest_body_is_taken() -> None:
    assert post(message().ljust(LARGEST)).status_code == 202


@pytest.mark.django_db(transaction=True)
def test_the_real_server_refuses_a_body_of_unsaid_size(live_site: Site) -> None:
    body = message(data={**FACTS, "description": "x" * 1_000_000})
    signed = headers(body) | {"Content-Type": "application/json"}
    connection = HTTPConnection(live_site.url.removeprefix("http://"), timeout=60)

    parts = iter([body[:500_000], body[500_000:]])
    connection.request("POST", DOOR, parts, signed, encode_chunked=True)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()

    assert (response.status, answer["error"]) == (413, "too_large")
    assert not InboxEvent.objects.exists()


@cases(
    "kind",
    *words("text/plain application/x-www-form-urlencoded application/jsonp"),
    *("application/json; charset=utf-16", ""),
)
def test_another_content_type_is_refused(kind: str) -> None:
    answer = send(message(), headers(message()), content_type=kind)
    assert_refused(answer, 415, "unsupported_media_type")


def test_a_compressed_body_is_refused() -> None:
    answer = post(message(), about={"Content-Encoding": "gzip"})
    assert_refused(answer, 415, "unsupported_media_type", "Content-Encoding")


# Lists


@cases(
    "changes, error, says",
    ({"type": "Unheard"}, "unknown_event_type", "Unheard"),
    ({"data": {}}, "invalid_message", "data.order_id"),
    ({"id": 7}, "invalid_message", "id"),
    ({"id": ""}, "invalid_message", "the id must be a text"),
    ({"surplus": 1}, "invalid_message", "surplus"),
)
def test_of_a_list_with_one_bad_event_nothing_is_stored_and_its_place_is_said(
    changes: dict[str, object], error: str, says: str
) -> None:
    assert_refused(post(listed("a", "b", "c", **changes)), 422, error, says, place=2)


@pytest.mark.django_db(transaction=True)
def test_of_a_list_with_one_conflict_nothing_is_stored() -> None:
    post(listed("b"))

    status, told = answered(post(listed("a", "b", data=OTHER_FACTS)))

    assert (status, told["error"], told["place"]) == (409, "conflicting_event", 1)
    assert InboxEvent.objects.get().event_id == "b"
