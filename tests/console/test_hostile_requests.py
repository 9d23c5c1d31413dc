"""No address answers with an error of ours, whatever it is asked, how, and by whom: each mistake is a 4xx."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import quote, urlencode
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.converters import (
    IntConverter,
    PathConverter,
    SlugConverter,
    StringConverter,
    UUIDConverter,
)
from django.urls.resolvers import RoutePattern

from monitoring.live.audience import MALFORMED, SIGNED_OUT
from orchestrator import start_process
from orchestrator.asgi import application
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import OPERATIONS, ActionRequest, make_token
from orchestrator.models import StepRun
from tests.apps.every_construct.processes import Inquiry
from tests.conftest import OPERATOR_MAY, VIEWER_MAY, person
from tests.services.cases import cases, words
from tests.services.exchange import headers
from tests.services.sizes import FULL, size

pytestmark = pytest.mark.django_db(transaction=True)

HUGE = "9" * 40
MORE = ("\0", "-1", str(2**63), "1e999")
HOSTILE = ("a\0b", HUGE, "²{'\u202e", *(MORE if FULL else ()))
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
SCRIPT = {"HX-Request": "true"}
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
Request = tuple[str, str, bytes, dict[str, str]]
KEY = "0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
QUESTIONS = words(
    """since rows q status definition version step map.step preview escalated owner
    before after page group search undrawn sub opened counts tab who action result
    event when from to next watch exclude at beside cause columns due key kind overlay
    sort state type verdict visit where window o p all e _changelist_filters
    status__exact pk__exact id__gte actor__id__exact"""
)
"""What addresses are asked beside their path, ours and the administration's."""
FIELDS = words(
    """version steps key revision reason command node to choice json input owner cascade
    value whom next username password language action _selected_action select_across
    index old_password new_password1 new_password2"""
)
"""What forms bring, ours and the administration's."""


@pytest.fixture
def real(helpdesk: None) -> dict[type, str]:
    """By kind of a part of an address, one that exists: of a workflow that waits for a decision."""
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    drain()
    run = StepRun.objects.get(instance=receipt.process_id, node="verdict")
    return {UUIDConverter: str(receipt.process_id), IntConverter: str(run.pk)}


def routes(
    patterns: list[URLPattern | URLResolver], before: tuple[object, ...] = ()
) -> Iterator[list[object]]:
    """Give the parts of each address: text, and converters where something is filled in."""
    for found in patterns:
        here = (*before, *parts(found.pattern))
        if isinstance(found, URLPattern):
            yield list(here)
        else:
            yield from routes(found.url_patterns, here)


def parts(pattern: object) -> list[object]:
    if not isinstance(pattern, RoutePattern):
        # Of the administration, which takes what no other address does, and of the files.
        return [PathConverter()]
    words = re.split(r"<(?:\w+:)?(\w+)>", str(pattern))
    known = pattern.converters
    return [known[one] if n % 2 else one for n, one in enumerate(words)]


def addresses(route: list[object], real: dict[type, str]) -> Iterator[str]:
    """Give addresses of a route: with what exists, with what does not, and with what nothing can be called."""
    if all(isinstance(part, str) for part in route):
        yield "/" + "".join(map(str, route))
        return
    many = 2**63  # one more than a database has room for
    fills: list[dict[type, str]] = [
        {UUIDConverter: str(UUID(int=7)), IntConverter: "0", SlugConverter: "retry"},
        {IntConverter: str(many), SlugConverter: "discard"},
    ]
    ours = [*OPERATIONS, "order-listing"]
    fills += [{SlugConverter: name, StringConverter: "svg"} for name in ours]
    numbered = ("skip", "discard")
    fills += [{SlugConverter: name, IntConverter: HUGE} for name in numbered]
    texts = ("%00", HUGE, "%C3%28", "_5F00")
    both: tuple[type, ...] = (StringConverter, PathConverter)
    fills += [dict.fromkeys(both, text) | {SlugConverter: HUGE} for text in texts]
    words = (("/", *(filled(part, fill, real) for part in route)) for fill in fills)
    yield from sorted({"".join(parts) for parts in words})


def filled(part: object, fill: dict[type, str], real: dict[type, str]) -> str:
    """Return a part of an address; a converter of django-ninja gives the text of a UUID."""
    if isinstance(part, str):
        return part
    of_text: tuple[type, ...] = (StringConverter, PathConverter, SlugConverter)
    texts: dict[type, str] = {**dict.fromkeys(of_text, "x"), **real, **fill}
    kind = UUIDConverter if isinstance(part, UUIDConverter) else type(part)
    return texts[kind]


def bearer_of(person: Client) -> str:
    """Return what programs of that person bring; of nobody what nobody has."""
    key = person.session.get("_auth_user_id")
    if key is None:
        return "Bearer a\0b"
    user = User.objects.get(pk=key)
    user.user_permissions.add(Permission.objects.get(codename="use_accesstoken"))
    asked = ActionRequest(User.objects.get(pk=key), uuid4())
    _token, value = make_token("hostile", 1, request=asked)
    return f"Bearer {value}"


ALL = 1 if connections["default"].vendor == "postgresql" else 16
"""A full run makes all requests on PostgreSQL, which refuses more values, and some on SQLite."""
EVERY = size(usual=64, full=ALL)
"""Of so many requests one is made, and of each person another one."""
PEOPLE = {"": (), "stranger": (), "viewer": VIEWER_MAY, "operator": OPERATOR_MAY}
"""What each may do; beside them there is an administrator."""


def signed_in(name: str, may: tuple[str, ...] | None) -> Client:
    """Return a client of one of the people that gets the page that others get, and not the exception."""
    client = Client(raise_request_exception=False)
    if name:
        user = person(name, *may or ())
        user.is_staff, user.is_superuser = name != "stranger", may is None
        user.save()
        client.force_login(user)
    return client


@pytest.mark.full_size(
    f"one of {EVERY} requests of each person, usually one of 64", seconds=3_000
)
def test_no_request_ends_in_an_error_of_ours(
    real: dict[type, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("ERROR", "django.request")  # a refusal is no news here
    asked, broken = 0, list[str]()
    people = {**PEOPLE, "administrator": None}
    for first, (name, may) in enumerate(people.items()):
        client = signed_in(name, may)
        bearer = bearer_of(client)
        mine = islice(every_request(real), first * EVERY // len(people), None, EVERY)
        for address, (method, query, form, about) in mine:
            kind = JSON if form.startswith(b"{") else FORM
            if address.startswith("/api/"):
                about = {**about, "Authorization": bearer}
            answer = client.generic(
                method, address, form, kind, query_string=query, headers=about
            )
            asked += 1
            if answer.status_code >= 500:
                broken.append(f"{method} {address}?{query[:90]} {form[:90]!r}")
        assert bool(client.session.get("_auth_user_id")) == bool(name)

    assert asked > 5_000 / EVERY
    assert broken == []


def every_request(real: dict[type, str]) -> Iterator[tuple[str, Request]]:
    """Give address, and method, query, form and headers, of each request."""
    for route in routes(get_resolver().url_patterns):
        for number, address in enumerate(addresses(route, real)):
            if not address.startswith(("/sign-out/", "/admin/logout/")):
                for request in requests(address, all_ways=number == 0):
                    yield address, request


def requests(address: str, *, all_ways: bool) -> Iterator[Request]:
    """Give method, query, form and headers of what an address is asked."""
    yield "GET", "", b"", {}
    yield "POST", "", form("a\0b", key=KEY), SCRIPT
    if not all_ways:
        return
    for method in METHODS:
        yield method, "", b"", {}
    for value in HOSTILE:
        text = quote(value, safe="")
        yield "GET", "&".join(f"{name}={text}" for name in QUESTIONS), b"", {}
        yield "GET", f"since={text}&rows={text}&before={text}", b"", SCRIPT
        yield "POST", "", form(value), {}
        yield "POST", "", form(value, key=KEY, revision="1"), {}
    yield "POST", "", b"%", {}
    if not address.startswith("/api/"):
        return
    for value in (*HOSTILE, -1, 10**40, 1e300, None, True, [], {"a": [None]}):
        body = dict.fromkeys(FIELDS, value)
        yield "POST", "", json.dumps(body).encode(), {}
        known = dict.fromkeys(("revision", "reason", "json", "edits"), value)
        yield "POST", "", json.dumps({**known, "key": KEY}).encode(), {}
    for broken in (b"{", b'{"key": "\xff"}', b'{"a": 1, "a": 2}', b"{" * 99_999):
        yield "POST", "", broken, {}


def form(value: str, **more: str) -> bytes:
    """Return a form with the same in each field but some."""
    return urlencode({**dict.fromkeys(FIELDS, value), **more}).encode()


@cases("name", "procession_session", "procession_csrf", "messages")
@cases("value", r'"\000aaaaaaaaaaaa"', '"' + "9" * 3_000 + '"', "é")
@cases("address", "/", "/sign-in/", "/metrics", "/nothing/")
def test_no_cookie_is_an_error(address: str, name: str, value: str) -> None:
    client = Client(raise_request_exception=False)
    about, form = {"Cookie": f"{name}={value}"}, {"username": "a", "next": "/"}

    assert client.get(address, headers=about).status_code < 500
    assert client.post(address, form, headers=about).status_code < 500


WORDS = ("\0", "a\0b", HUGE, "-1", "\u202e", " ", "x" * 300)


@cases("field", "id", "type", "process_id", "correlation_key", "data")
@cases("value", *WORDS, 10**40, -1, 1e300, None, [], {"order_id": []})
def test_no_signed_event_is_an_error(field: str, value: object) -> None:
    facts = {"order_id": "EX-1", "external_id": "EX-1", "description": "10 MWh"}
    event = {"id": "one", "type": "ExternalOrderCreated", "data": facts}
    client = Client(raise_request_exception=False)

    for body in ({**event, field: value}, [{**event, field: value}]):
        text = json.dumps(body).encode()
        sign = headers(text, id=f"msg_{len(text)}")
        answer = client.post("/hooks/exchange/", text, content_type=JSON, headers=sign)
        assert answer.status_code < 500, answer.content


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "query", "cookie"),
    [
        ("/ws/live/", "watch=instance:%00", ""),
        ("/ws/live/", f"watch=definition:{HUGE}&watch=%00", "procession_session=aaa"),
        ("/ws/live/", "", r'procession_session="\000aaaaaaaaaaaa"'),
        ("/ws/live/\0", "watch=overview", ""),
        ("/ws/", "watch=overview", ""),
        ("/nothing/" + HUGE, "", "é"),
    ],
)
async def test_no_socket_is_an_error(path: str, query: str, cookie: str) -> None:
    about = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1")]
    about += [(b"cookie", cookie.encode("latin-1"))] if cookie else []
    socket = WebsocketCommunicator(application, "/", about)
    socket.scope |= {"path": path, "query_string": query.encode()}

    accepted, code = await socket.connect(timeout=60)
    if accepted:
        code = (await socket.receive_output(timeout=60))["code"]

    assert code in (SIGNED_OUT, MALFORMED, 1000)
    await sync_to_async(connections.close_all)()
