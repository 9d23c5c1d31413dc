"""The socket: who may open it, what it says, and that it closes when it may not stay open."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client

from monitoring import consumers
from monitoring.broadcaster import Broadcaster, as_hint, merged
from orchestrator.asgi import application
from orchestrator.signals import Change
from tests.services.patience import A_MINUTE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest_asyncio.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """Closes what the sockets opened in their thread, which the test database could not be dropped under."""
    yield
    await sync_to_async(connections.close_all)()


def cookie(user: User | None) -> list[tuple[bytes, bytes]]:
    if user is None:
        return []
    client = Client()
    client.force_login(user)
    pairs = "; ".join(f"{name}={m.value}" for name, m in client.cookies.items())
    return [(b"cookie", pairs.encode())]


async def opened(
    user: User | None, query: str, origin: bytes = b"http://127.0.0.1"
) -> tuple[WebsocketCommunicator, bool]:
    headers = [(b"host", b"127.0.0.1"), (b"origin", origin)]
    headers += await sync_to_async(cookie)(user)
    socket = WebsocketCommunicator(application, f"/ws/live/?{query}", headers)
    accepted, _ = await socket.connect(timeout=60)
    return socket, accepted


async def closed(socket: WebsocketCommunicator) -> int:
    """The code that the server closes with; what it sends before that is passed over."""
    while True:
        output = await socket.receive_output(timeout=60)
        if output["type"] == "websocket.close":
            return int(output["code"])


async def stays_open(socket: WebsocketCommunicator) -> bool:
    """Whether the server does not close it; hints of what happened just before the test are passed over."""
    while not await socket.receive_nothing():
        output = await socket.receive_output(timeout=60)
        if output["type"] == "websocket.close":
            return False
    return True


async def told(socket: WebsocketCommunicator) -> dict[str, Any]:
    return dict(json.loads(await socket.receive_from(timeout=60)))


def change(**fields: Any) -> Change:
    return Change(
        process_id=fields.pop("process_id", uuid4()),
        name="order-listing",
        status="waiting",
        **fields,
    )


async def test_nobody_watches_without_a_session() -> None:
    socket, _ = await opened(None, "watch=overview")

    assert await closed(socket) == 4401


async def test_a_stranger_may_not_watch(stranger: User) -> None:
    socket, _ = await opened(stranger, "watch=overview")

    assert await closed(socket) == 4403


@pytest.mark.parametrize(
    ("query", "code"), [("watch=overview", 0), ("watch=overview&watch=events", 4403)]
)
async def test_events_are_watched_only_by_those_who_may_look_at_events(
    query: str, code: int, viewer: User
) -> None:
    look = await Permission.objects.aget(codename="view_inboxevent")
    await viewer.user_permissions.aremove(look)
    socket, _ = await opened(viewer, query)

    if code:
        assert await closed(socket) == code
    else:
        assert await stays_open(socket)
        await socket.disconnect()


async def test_losing_the_permission_for_events_closes_the_socket_of_their_page(
    viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "CHECK", 0.1)
    socket, _ = await opened(viewer, "watch=events")

    look = await Permission.objects.aget(codename="view_inboxevent")
    await viewer.user_permissions.aremove(look)

    assert await closed(socket) == 4403


async def test_another_site_cannot_open_the_socket(viewer: User) -> None:
    _, accepted = await opened(viewer, "watch=overview", b"https://elsewhere.example")

    assert not accepted


@pytest.mark.parametrize(
    "query",
    [
        "",
        "watch=everything",
        "watch=instance:1",
        "watch=definition:",
        "watch=definition:a.b",
        "watch=overview&" * 9,
    ],
)
async def test_a_subject_that_is_none_closes_the_socket(
    query: str, viewer: User
) -> None:
    socket, _ = await opened(viewer, query)

    assert await closed(socket) == 4400


async def test_a_viewer_is_told_of_changes_and_of_nothing_else(viewer: User) -> None:
    mine, other = uuid4(), uuid4()
    socket, _ = await opened(viewer, f"watch=instance:{mine}")
    broadcaster = Broadcaster()

    broadcaster.put(change(process_id=other, revision=7))
    broadcaster.put(
        change(process_id=mine, revision=3, steps={"A": "done"}, edge="e1", at=1.5)
    )

    assert await told(socket) == {
        "id": str(mine),
        "name": "order-listing",
        "revision": 3,
        "status": "waiting",
        "steps": {"A": "done"},
        "edges": ["e1"],
        "at": 1.5,
    }
    assert await socket.receive_nothing()
    await socket.disconnect()


async def test_signing_out_elsewhere_closes_the_socket(
    viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "CHECK", 0.1)
    socket, _ = await opened(viewer, "watch=overview")

    await sync_to_async(viewer.set_password)("another-password-1")
    await sync_to_async(viewer.save)()

    assert await closed(socket) == 4401


async def test_a_withdrawn_permission_closes_the_socket(
    viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "CHECK", 0.1)
    socket, _ = await opened(viewer, "watch=overview")

    await sync_to_async(viewer.user_permissions.clear)()

    assert await closed(socket) == 4403


async def test_a_socket_that_the_layer_has_forgotten_closes(
    viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "CHECK", 0.1)
    monkeypatch.setattr(consumers, "CANARY", 0.2)
    socket, _ = await opened(viewer, "watch=overview")

    async def lost(*_: object) -> None:
        """The message goes nowhere."""

    monkeypatch.setattr(get_channel_layer(), "send", lost)

    assert await closed(socket) == 1012


async def test_an_open_socket_shows_that_it_is_alive(
    viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "CHECK", 0.1)
    socket, _ = await opened(viewer, "watch=overview")

    assert await told(socket) == {"beat": True}
    await socket.disconnect()


async def test_a_burst_of_changes_is_one_hint_that_keeps_the_whole_path() -> None:
    mine = str(uuid4())
    first = {
        "id": mine,
        "revision": 2,
        "steps": {"A": "done", "B": "waiting"},
        "edges": ["e1"],
    }
    second = {
        "id": mine,
        "revision": 3,
        "steps": {"B": "done", "C": "waiting"},
        "edges": ["e2"],
    }

    for older, newer in ((first, second), (second, first)):
        assert merged(older, newer) == {
            "id": mine,
            "revision": 3,
            "steps": {"A": "done", "B": "done", "C": "waiting"},
            "edges": ["e1", "e2"],
        }


async def test_a_hint_stays_short_however_many_branches_a_change_has_taken() -> None:
    wide = change(edge=",".join(f"e{number}" for number in range(10_000)))

    hint = as_hint(wide)

    assert hint["edges"] == [f"e{number}" for number in range(100)]
    assert len(merged({**hint, "revision": 1}, hint)["edges"]) == 100


async def test_a_dead_channel_layer_never_reaches_the_code_that_commits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class DeadLayer:
        async def group_send(self, *_: object) -> None:
            raise ConnectionError("gone")

    monkeypatch.setattr("monitoring.broadcaster.get_channel_layer", DeadLayer)
    broadcaster = Broadcaster()

    for revision in range(100):
        broadcaster.put(change(revision=revision))
    flushed = await asyncio.to_thread(broadcaster.flush, A_MINUTE)

    assert flushed
    assert sum("not told" in line for line in caplog.messages) == 1
