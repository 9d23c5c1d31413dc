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

from monitoring.routing import with_live_pages
from orchestrator.models import OperatorAction
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import BY_SCRIPT
from tests.services.sockets import headers_of

pytestmark = [pytest.mark.django_db, pytest.mark.once]

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


def test_strangers_are_sent_where_the_project_signs_them_in(
    client: Client, settings: Settings
) -> None:
    answer = client.get("/ops/processes/?status=failed")

    expected = "/enter/?next=/ops/processes/%3Fstatus%3Dfailed"
    assert (answer.status_code, answer.headers["Location"]) == (302, expected)
    client.read("/ops/", status=401, headers=BY_SCRIPT)
    # Nor does the project's own middleware for strangers send a script to its page.
    own = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*BARE, own]
    client.read("/ops/", status=401, headers=BY_SCRIPT)
    assert client.get("/ops/").headers["Location"] == "/enter/?next=/ops/"


def test_every_address_on_a_page_is_under_the_consoles(admin: Client) -> None:
    places = words(
        """/ops/ /ops/processes/ /ops/events/ /ops/failures/ /ops/decisions/ /ops/waits/
        /ops/stalled/ /ops/definitions/order-listing/"""
    )

    for place in (*places, f"/ops/processes/{placed().pk}/"):
        text = admin.read(place)
        found = re.findall(r'(?:href|action|src|data-socket)="(/[^"]*)"', text)
        others = {at for at in found if not at.startswith(("/ops/", "/static/"))}
        assert (place, others) == (place, set())
        assert 'data-socket="/ops/ws/live/"' in text


@cases("headers", {}, BY_SCRIPT)
def test_buttons_need_no_middleware(headers: dict[str, str], operating: Client) -> None:
    place = reverse("monitoring:act", args=[placed().pk, "escalate"])

    answer = operating.post(place, ESCALATE, headers=headers)
    refused = operating.post(place, {**ESCALATE, "reason": ""})

    assert answer.status_code == (200 if headers else 302)
    assert OperatorAction.objects.get().result == "done"
    assert (b"<hx-partial" in answer.content) == bool(headers)
    assert refused.status_code == 400
    assert 'class="button" href="/ops/"' in refused.content.decode()


def test_webhooks_come_in_where_the_project_has_them(
    client: Client, settings: Settings, valkey: object
) -> None:
    key = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
    now = datetime.now(UTC)
    body = '{"type": "ListedOnInternal", "data": {"order_id": "A-1"}}'
    headers = {
        "webhook-id": "m-1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(key).sign("m-1", now, body),
    }
    del settings.REDIS_URL, settings.WEBHOOK_SOURCES
    settings.WEBHOOK_RATES = {"bank": (5, 20)}

    def sent() -> int:
        return client.post(
            "/hooks/in/bank/", body, content_type="application/json", headers=headers
        ).status_code

    assert sent() == 404
    settings.WEBHOOK_SOURCES = {"bank": [key]}
    assert sent() == 202


# The socket


@pytest_asyncio.fixture
async def no_connection_left() -> Any:
    """Closes what the sockets opened in their thread, which the test database could not be dropped under."""
    yield
    await sync_to_async(connections.close_all)()


async def code_of(path: str, user: User, root: str = "") -> int:
    """What a page's socket is closed with: 0 if it stays open."""
    headers = await headers_of(user)
    application = with_live_pages(get_asgi_application())
    socket = WebsocketCommunicator(application, f"{path}?watch=overview", headers)
    socket.scope["root_path"] = root
    accepted, code = await socket.connect(timeout=60)
    if not accepted:
        return int(code or 0)
    if not await socket.receive_nothing():
        return int((await socket.receive_output())["code"])
    await socket.disconnect()
    return 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.usefixtures("no_connection_left")
async def test_the_socket_is_where_the_project_has_the_console_and_nowhere_else(
    viewer: User, valkey: object
) -> None:
    proxy = "/behind/a/proxy"
    for path in ("/ops/ws/live/", "/en/desk/ws/live/", "/ja/desk/ws/live/"):
        assert await code_of(path, viewer) == 0, path
    assert await code_of(f"{proxy}/ops/ws/live/", viewer, proxy) == 0
    for path in ("/ws/live/", "/", "/ops/", "/ops/find/", "/no/"):
        assert await code_of(path, viewer) == 1000, path


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


def test_a_server_without_sockets_asks_for_one(viewing: Client) -> None:
    viewing.read("/ops/ws/live/", status=426)
