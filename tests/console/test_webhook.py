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
from orchestrator.webhooks.body import Posted
from orchestrator.webhooks.views import deliver
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.exchange import headers
from tests.services.site import Site

pytestmark = pytest.mark.django_db

DOOR = "/hooks/exchange/"
OTHER_KEY = "whsec_YW5vdGhlciBrZXkgZm9yIHRoZSB0ZXN0cywgYWxzbyBsb25n"
FACTS = {
    "order_id": "EX-1",
    "external_id": "EX-1",
    "description": "10 MWh base load, Hokkaido area",
}


def message(**changes: object) -> bytes:
    return json.dumps(
        {"type": "ExternalOrderCreated", "data": FACTS} | changes
    ).encode()


def post(
    body: bytes,
    *,
    door: str = DOOR,
    content_type: str = "application/json",
    **signed: Any,
) -> HttpResponse:
    return send(body, headers(body, **signed), door=door, content_type=content_type)


def send(
    body: bytes,
    signature: dict[str, str],
    *,
    door: str = DOOR,
    content_type: str = "application/json",
) -> HttpResponse:
    client = Client(enforce_csrf_checks=True)
    return client.post(door, body, content_type=content_type, headers=signature)  # type: ignore[return-value]


def assert_refused(
    response: HttpResponse, status: int, error: str, says: str = ""
) -> None:
    answer = json.loads(response.content)
    assert (response.status_code, answer["error"]) == (status, error)
    assert says in answer["detail"]
    assert set(answer) - {"place"} == {"error", "detail"}
    assert not InboxEvent.objects.exists()
    assert not IssuedCommand.objects.exists()


def listed(*ids: str, **changes: object) -> bytes:
    """A list of the same facts under these ids; the changes are of the last one."""
    common = {"type": "ExternalOrderCreated", "data": FACTS}
    events: list[dict[str, object]] = [{**common, "id": id} for id in ids]
    events[-1] |= changes
    return json.dumps(events).encode()


# What is taken


def test_a_signed_event_is_stored_and_acknowledged_with_a_receipt() -> None:
    process_id = uuid7()

    response = post(message(process_id=str(process_id)))

    event = InboxEvent.objects.get()
    assert response.status_code == 202
    assert json.loads(response.content) == {"receipt": event.pk, "id": "msg_1"}
    assert (event.source, event.event_id, event.type) == (
        "exchange",
        "msg_1",
        "ExternalOrderCreated",
    )
    assert event.process_id == process_id
    assert event.body == FACTS


def test_an_event_may_name_a_correlation_key_instead_of_a_process() -> None:
    body = message(
        type="ExternalOrderRejected", data={"reason": "no"}, correlation_key="O-1"
    )

    response = post(body)

    assert response.status_code == 202
    assert InboxEvent.objects.get().correlation_key == "O-1"


def test_an_event_without_a_process_id_finds_its_key_in_its_data() -> None:
    post(message())

    event = InboxEvent.objects.get()
    assert (event.process_id, event.target, event.correlation_key) == (
        None,
        "order-listing",
        "EX-1",
    )


def test_a_replay_gets_the_same_receipt_and_stores_nothing() -> None:
    first = post(message())

    second = post(message())

    assert (first.status_code, second.status_code) == (202, 200)
    assert first.content == second.content
    assert InboxEvent.objects.get().repeats == 1


def test_a_repeat_that_was_signed_anew_is_the_same_message() -> None:
    first = post(message(), age=timedelta(minutes=2))

    second = post(message())

    assert first.content == second.content
    assert InboxEvent.objects.count() == 1


def test_another_body_under_the_same_id_is_a_conflict() -> None:
    post(message())

    response = post(message(data={**FACTS, "external_id": "EX-2"}))

    assert response.status_code == 409
    assert json.loads(response.content)["error"] == "conflicting_event"
    assert InboxEvent.objects.get().body == FACTS


def test_a_list_of_events_is_stored_in_its_order_each_under_an_id_of_its_own() -> None:
    response = post(listed("b", "a", "c"))

    events = list(InboxEvent.objects.order_by("id"))
    assert response.status_code == 202
    assert [event.event_id for event in events] == ["b", "a", "c"]
    assert json.loads(response.content) == {
        "id": "msg_1",
        "receipts": [{"receipt": event.pk, "id": event.event_id} for event in events],
    }


@pytest.mark.django_db(transaction=True)
def test_it_has_transactions_of_its_own_in_a_project_that_makes_one_of_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within: list[bool] = []

    def seen(posted: Posted) -> list[Receipt]:
        within.append(connection.in_atomic_block)
        return deliver(posted)

    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    monkeypatch.setattr(views, "deliver", seen)

    assert post(listed("1", "2")).status_code == 202
    assert within == [False]


def test_a_list_may_bring_again_what_came_before() -> None:
    post(listed("a", "b"))

    answers = [post(listed("b", "c")), post(listed("b", "c"))]

    assert [answer.status_code for answer in answers] == [202, 200]
    assert InboxEvent.objects.count() == 3


@cases("key", 0, 1)
def test_while_a_key_is_replaced_both_are_good(settings: Settings, key: int) -> None:
    keys = [OTHER_KEY, settings.WEBHOOK_SOURCES["exchange"][0]]
    settings.WEBHOOK_SOURCES = {"exchange": keys}

    assert post(message(), key=keys[key]).status_code == 202


def test_a_message_may_carry_signatures_of_several_keys() -> None:
    signature = headers(message())
    other = headers(message(), key=OTHER_KEY)["webhook-signature"]
    signature["webhook-signature"] = (
        f"v1a,bm90aGluZw== {other} {signature['webhook-signature']}"
    )

    assert send(message(), signature).status_code == 202


# Who is refused


def test_a_key_that_was_replaced_is_refused(settings: Settings) -> None:
    old = settings.WEBHOOK_SOURCES["exchange"][0]
    settings.WEBHOOK_SOURCES = {"exchange": [OTHER_KEY]}

    assert_refused(post(message(), key=old), 401, "bad_signature")


@cases("name", "webhook-id", "webhook-timestamp", "webhook-signature")
def test_a_missing_header_is_named(name: str) -> None:
    signature = headers(message())
    del signature[name]

    assert_refused(
        send(message(), signature), 401, "bad_signature", f"send the header {name}"
    )


def test_no_signature_at_all_is_refused() -> None:
    assert_refused(send(message(), {}), 401, "bad_signature", "webhook-id")


@cases("value", *words("""v1, v1,AAAA v1 nonsense v1,ü v2,AAAA ,,,, v1,%%%%"""), " ")
def test_a_wrong_signature_is_refused(value: str) -> None:
    assert_refused(
        send(message(), headers(message()) | {"webhook-signature": value}),
        401,
        "bad_signature",
    )


@cases(
    "age, says", (timedelta(minutes=6), "too old"), (timedelta(minutes=-6), "too new")
)
def test_a_message_from_another_time_is_refused(age: timedelta, says: str) -> None:
    assert_refused(post(message(), age=age), 401, "bad_signature", says)


@cases("value", "yesterday", "NaN", "inf", "-1", "1e400")
def test_a_timestamp_that_is_none_is_refused(value: str) -> None:
    assert_refused(
        send(message(), headers(message()) | {"webhook-timestamp": value}),
        401,
        "bad_signature",
    )


def test_a_body_changed_by_one_byte_is_refused() -> None:
    changed = message().replace(b"10 MWh", b"90 MWh")

    assert_refused(send(changed, headers(message())), 401, "bad_signature")


def test_an_id_or_a_time_other_than_the_signed_one_is_refused() -> None:
    earlier = headers(message(), age=timedelta(minutes=1))["webhook-timestamp"]

    for change in ({"webhook-id": "msg_2"}, {"webhook-timestamp": earlier}):
        assert_refused(
            send(message(), headers(message()) | change), 401, "bad_signature"
        )


@cases("source", "bank", "EXCHANGE", "exchange%00", "a.b")
def test_an_unknown_source_looks_like_any_address_that_does_not_exist(
    source: str,
) -> None:
    assert_refused(post(message(), door=f"/hooks/{source}/"), 404, "not_found")


def test_a_source_without_keys_is_unknown(settings: Settings) -> None:
    signature = headers(message())
    settings.WEBHOOK_SOURCES = {"exchange": []}

    assert_refused(send(message(), signature), 404, "not_found")


def test_only_a_post_is_taken() -> None:
    assert_refused(Client().get(DOOR), 405, "method_not_allowed")  # type: ignore[arg-type]


# What is refused

NOT_JSON = [
    (b"order=1", "not JSON"),
    (b" ", "not JSON: Expecting value"),
    (
        b'{"type": "ExternalOrderCreated", "data": {"price": NaN}}',
        "NaN is not a JSON number",
    ),
    (b'{"type": "ExternalOrderCreated", "data": {"price": -Infinity}}', "-Infinity"),
    (b'{"type": "ExternalOrderCreated", "data": {"price": 1e999}}', "too large"),
    (b'{"type": "A", "type": "ExternalOrderCreated", "data": {}}', "occurs twice"),
    (
        rb'{"type": "ExternalOrderCreated", "data": {"order_id": "a\u0000b"}}',
        "data.order_id: text must not contain the NUL",
    ),
    (
        rb'{"type": "ExternalOrderCreated", "data": {"order_id": "\ud800"}}',
        "lone surrogates",
    ),
]


@cases("body, says", *NOT_JSON)
def test_what_is_not_strict_json_is_refused(body: bytes, says: str) -> None:
    assert_refused(post(body), 400, "not_json", says)


TOO_MUCH = [
    (
        b'{"type": "ExternalOrderCreated", "data": '
        + b"[" * 1_000
        + b"]" * 1_000
        + b"}",
        "nested deeper",
    ),
    (b'{"a":' * 1_000 + b"1" + b"}" * 1_000, "nested deeper than 64 levels"),
    (json.dumps({f"k{n}": n for n in range(5_001)}).encode(), "more than 5,000 keys"),
]


@cases("body, says", *TOO_MUCH)
def test_json_of_too_many_keys_or_levels_is_too_large_and_not_called_no_json(
    body: bytes, says: str
) -> None:
    assert_refused(post(body), 413, "too_large", says)


def test_a_body_that_is_not_utf_8_is_refused() -> None:
    assert_refused(
        send(b'{"a": "\xff"}', headers(b"{}")), 401, "bad_signature", "cannot be read"
    )


@cases(
    "body, says",
    (b"[7]", "send an object"),
    (b"null", "send an object"),
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
    assert_refused(post(body), 422, "invalid_message", says)


@cases("kind", "OrderEaten", "", "__class__", "ListOnInternal", "O" * 10_000)
def test_an_event_type_that_nobody_knows_is_refused(kind: str) -> None:
    assert_refused(post(message(type=kind)), 422, "unknown_event_type")


@cases("id", "x" * 201, "two\twords")
def test_an_id_that_the_inbox_cannot_keep_is_refused(id: str) -> None:
    assert_refused(post(message(), id=id), 422, "invalid_message", "id")


def test_a_megabyte_is_refused_before_it_is_read() -> None:
    body = message(data={**FACTS, "description": "x" * 1_000_000})

    assert_refused(post(body), 413, "too_large", "at most 262144 bytes")


@cases("length", "9" * 5_000, "-1", "many", "1_000")
def test_a_length_that_is_none_is_refused(length: str) -> None:
    answer = Client().post(
        DOOR,
        message(),
        content_type="application/json",
        headers=headers(message()),
        CONTENT_LENGTH=length,
    )

    assert_refused(answer, 413, "too_large", "say how many")  # type: ignore[arg-type]


def test_one_byte_too_many_is_refused() -> None:
    body = message().ljust(256 * 1024 + 1)

    assert_refused(post(body), 413, "too_large")


def test_the_largest_body_is_taken() -> None:
    assert post(message().ljust(256 * 1024)).status_code == 202


@pytest.mark.django_db(transaction=True)
def test_the_real_server_refuses_a_body_whose_size_was_not_said(
    live_site: Site,
) -> None:
    body = message(data={**FACTS, "description": "x" * 1_000_000})
    signed = headers(body) | {"Content-Type": "application/json"}
    connection = HTTPConnection(live_site.url.removeprefix("http://"), timeout=60)

    connection.request(
        "POST",
        DOOR,
        iter([body[:500_000], body[500_000:]]),
        signed,
        encode_chunked=True,
    )
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()

    assert (response.status, answer["error"]) == (413, "too_large")
    assert not InboxEvent.objects.exists()


@cases(
    "content_type",
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/json; charset=utf-16",
    "application/jsonp",
    "",
)
def test_another_content_type_is_refused(content_type: str) -> None:
    assert_refused(
        post(message(), content_type=content_type), 415, "unsupported_media_type"
    )


def test_a_compressed_body_is_refused() -> None:
    signature = headers(message()) | {"Content-Encoding": "gzip"}

    assert_refused(
        send(message(), signature), 415, "unsupported_media_type", "Content-Encoding"
    )


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
    response = post(listed("a", "b", "c", **changes))

    assert_refused(response, 422, error, says)
    assert json.loads(response.content)["place"] == 2


@pytest.mark.django_db(transaction=True)
def test_of_a_list_with_one_conflict_nothing_is_stored() -> None:
    post(listed("b"))
    other = {**FACTS, "external_id": "EX-2"}

    response = post(listed("a", "b", data=other))

    assert response.status_code == 409
    answer = json.loads(response.content)
    assert (answer["error"], answer["place"]) == ("conflicting_event", 1)
    assert list(InboxEvent.objects.values_list("event_id", flat=True)) == ["b"]


def test_an_empty_list_is_refused() -> None:
    assert_refused(post(b"[]"), 422, "invalid_message", "no event")


def test_a_list_of_too_many_events_is_refused() -> None:
    events = json.dumps([{"id": str(n), "type": "x"} for n in range(1001)])
    assert_refused(post(events.encode()), 413, "too_large", "1,000 events")


def test_a_list_needs_an_id_for_each_event() -> None:
    assert_refused(post(b"[" + message() + b"]"), 422, "invalid_message", "id")
