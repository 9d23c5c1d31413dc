"""The console in a project that is not ours: its addresses, middleware, way to sign in and ASGI application."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.db import connections
from django.urls import reverse
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.routing import with_live_pages
from orchestrator.models import OperatorAction, ProcessInstance
from orchestrator.testing import run
from tests.services.cases import cases, words
from tests.services.client import Client

pytestmark = [pytest.mark.django_db, pytest.mark.once]

BY_SCRIPT = {"HX-Request": "true"}
ESCALATE = {"key": "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b", "reason": "because"}
BARE = [  # what a new project has, without what it can do without
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]


@pytest.fixture(autouse=True)
def elsewhere(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.apps.elsewhere.urls"
    settings.MIDDLEWARE = BARE
    settings.LOGIN_URL = "enter"


@pytest.fixture
def process() -> ProcessInstance:
    order = place_order(Destination.BOTH, "50 MWh")
    run()
    return ProcessInstance.objects.get(pk=order.process_id)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_strangers_are_sent_where_the_project_signs_them_in(client: Client) -> None:
    answer = client.get("/ops/processes/?status=failed")

    expected = "/enter/?next=/ops/processes/%3Fstatus%3Dfailed"
    assert (answer.status_code, answer.headers["Location"]) == (302, expected)
    assert client.get("/ops/", headers=BY_SCRIPT).status_code == 401


def test_the_projects_own_middleware_for_strangers_sends_no_script_to_its_page(
    client: Client, settings: Settings
) -> None:
    own = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*BARE, own]

    assert client.get("/ops/", headers=BY_SCRIPT).status_code == 401
    assert client.get("/ops/").headers["Location"] == "/enter/?next=/ops/"


def test_every_address_on_a_page_is_under_the_consoles(
    administrator: User, process: ProcessInstance
) -> None:
    client = signed_in(administrator)
    places = [
        *words(
            """/ops/ /ops/processes/ /ops/events/ /ops/failures/ /ops/decisions/ /ops/waits/
        /ops/stalled/ /ops/definitions/order-listing/"""
        ),
        f"/ops/processes/{process.pk}/",
    ]

    for place in places:
        text = client.read(place)
        found = re.findall(r'(?:href|action|src|data-socket)="(/[^"]*)"', text)
        others = {at for at in found if not at.startswith(("/ops/", "/static/"))}
        assert (place, others) == (place, set())
        assert 'data-socket="/ops/ws/live/"' in text


@cases("headers", {}, BY_SCRIPT)
def test_a_button_needs_no_other_middleware(
    headers: dict[str, str], operator: User, process: ProcessInstance
) -> None:
    place = reverse("monitoring:act", args=[process.pk, "escalate"])

    answer = signed_in(operator).post(place, ESCALATE, headers=headers)

    assert answer.status_code == (200 if headers else 302)
    assert OperatorAction.objects.get().result == "done"
    assert (b"<hx-partial" in answer.content) == bool(headers)


def test_a_refused_form_leads_back_into_the_console(
    operator: User, process: ProcessInstance
) -> None:
    place = reverse("monitoring:act", args=[process.pk, "escalate"])

    answer = signed_in(operator).post(place, {**ESCALATE, "reason": ""})

    assert answer.status_code == 400
    assert 'class="button" href="/ops/"' in answer.content.decode()


def test_webhooks_come_in_where_the_project_has_them(
    client: Client, settings: Settings, valkey: object
) -> None:
    key = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
    now, body = (
        datetime.now(UTC),
        '{"type": "ListedOnInternal", "data": {"order_id": "A-1"}}',
    )
    signature = Webhook(key).sign("m-1", now, body)
    headers = {"webhook-id": "m-1", "webhook-timestamp": str(int(now.timestamp()))}
    headers["webhook-signature"] = signature
    del settings.REDIS_URL
    settings.WEBHOOK_RATES = {"bank": (5, 20)}

    def sent() -> int:
        return client.post(
            "/hooks/in/bank/", body, content_type="application/json", headers=headers
        ).status_code

    del settings.WEBHOOK_SOURCES
    assert sent() == 404
    settings.WEBHOOK_SOURCES = {"bank": [key]}
    assert sent() == 202


# The socket


@pytest_asyncio.fixture
async def no_connection_left() -> Any:
    """Closes what the sockets opened in their thread, which the test database could not be dropped under."""
    yield
    await sync_to_async(connections.close_all)()


async def code_of(application: Any, path: str, user: User, **about: Any) -> int:
    """What a page's socket is closed with: 0 if it stays open."""
    client = await sync_to_async(signed_in)(user)
    pairs = "; ".join(f"{name}={it.value}" for name, it in client.cookies.items())
    headers = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1")]
    headers.append((b"cookie", pairs.encode()))
    socket = WebsocketCommunicator(application, f"{path}?watch=overview", headers)
    socket.scope.update(about)
    accepted, code = await socket.connect(timeout=60)
    if accepted and await socket.receive_nothing():
        await socket.disconnect()
        return 0
    return (
        int(code or 0) if not accepted else int((await socket.receive_output())["code"])
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.usefixtures("no_connection_left")
@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/ops/ws/live/", ""),
        ("/en/desk/ws/live/", ""),
        ("/ja/desk/ws/live/", ""),
        ("/behind/a/proxy/ops/ws/live/", "/behind/a/proxy"),
    ],
)
async def test_the_socket_is_where_the_project_has_the_console(
    path: str, root: str, viewer: User, valkey: object
) -> None:
    application = with_live_pages(get_asgi_application())

    assert await code_of(application, path, viewer, root_path=root) == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.usefixtures("no_connection_left")
@pytest.mark.parametrize("path", ["/ws/live/", "/", "/ops/", "/ops/find/", "/no/"])
async def test_a_socket_elsewhere_is_refused_where_the_project_has_none(
    path: str, viewer: User
) -> None:
    application = with_live_pages(get_asgi_application())

    assert await code_of(application, path, viewer) == 1000


@pytest.mark.asyncio
async def test_the_projects_own_sockets_and_pages_stay_its_own() -> None:
    asked = []

    async def own(scope: dict[str, Any], receive: Any, send: Any) -> None:
        asked.append(scope)

    application = with_live_pages(own)
    query = {"query_string": b"since=1", "headers": [(b"hx-request", b"true")]}
    socket = {"type": "websocket", "path": "/chat/"}
    page = {"type": "http", "method": "GET", "path": "/", **query}

    await application(socket, None, None)
    await application(page, None, None)

    assert asked == [socket, page]


def test_a_server_without_sockets_asks_for_one(viewer: User) -> None:
    assert signed_in(viewer).get("/ops/ws/live/").status_code == 426
