"""The socket: who may open it, what it says, and that it closes when it may not stay open."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.layers import InMemoryChannelLayer, get_channel_layer
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Permission, User
from django.db import OperationalError, connections

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.live import audience, consumers
from monitoring.live.broadcaster import Broadcaster, change_hint, merge_hints
from monitoring.live.turns import need
from orchestrator.asgi import application
from orchestrator.engine.loops.drain import drain
from orchestrator.models import DefinitionGrant, ProcessInstance
from orchestrator.signals import Change
from tests.apps.process_managers.desk import place
from tests.console.test_seen_by_definition import ORDERS, PARCELS, VIEW, let_see
from tests.services.forms_of_actions import failed_order
from tests.services.patience import A_MINUTE
from tests.services.sockets import HERE, headers_of
from tests.services.valkey import ValkeyServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest_asyncio.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """Closes what the sockets opened in their thread, which the test database could not be dropped under."""
    yield
    await sync_to_async(connections.close_all)()


async def opened(
    user: User | None, query: str = "watch=overview", origin: str = HERE
) -> WebsocketCommunicator:
    headers = await headers_of(user, origin)
    socket = WebsocketCommunicator(application, f"/ws/live/?{query}", headers)
    accepted, _ = await socket.connect(timeout=60)
    assert accepted is (origin == HERE)
    return socket


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
    usual: dict[str, Any] = {"process_id": uuid4(), "name": "order-listing"}
    return Change(**usual | {"status": "waiting"} | fields)


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Whether a page may stay open is asked ten times a second."""
    monkeypatch.setattr(audience, "CHECK", 0.1)
    return monkeypatch


SUBJECTS = (
    "",
    "watch=everything",
    "watch=instance:1",
    "watch=definition:",
    "watch=definition:a.b",
    "watch=overview&" * 9,
)


async def test_who_may_not_watch_and_a_subject_that_is_none_close_the_socket(
    viewer: User, stranger: User
) -> None:
    assert await closed(await opened(None)) == 4401
    assert await closed(await opened(stranger)) == 4403
    for query in SUBJECTS:
        assert await closed(await opened(viewer, query)) == 4400, query
    await opened(viewer, origin="https://elsewhere.example")  # it is not accepted


async def test_who_may_not_watch_events_or_anything_any_more_is_cut_off(
    viewer: User, quickly: pytest.MonkeyPatch
) -> None:
    events = await opened(viewer, "watch=events")
    look = await Permission.objects.aget(codename="view_inboxevent")
    await viewer.user_permissions.aremove(look)

    assert await closed(events) == 4403
    assert await closed(await opened(viewer, "watch=overview&watch=events")) == 4403
    others = await opened(viewer)
    assert await told(others) == {"beat": True, "pace": need.pace(1)}  # it is alive
    await sync_to_async(viewer.user_permissions.clear)()
    assert await closed(others) == 4403


async def test_a_viewer_is_told_of_changes_and_of_nothing_else(viewer: User) -> None:
    mine = uuid4()
    socket = await opened(viewer, f"watch=instance:{mine}")
    broadcaster = Broadcaster()

    broadcaster.put(change(revision=7))
    moved = {"revision": 3, "steps": {"A": "done"}, "at": 1.5}
    broadcaster.put(change(process_id=mine, edge="e1", **moved))

    assert await told(socket) == {
        "id": str(mine),
        "name": "order-listing",
        "status": "waiting",
        **moved,
        "edges": ["e1"],
        "pace": need.pace(1),
    }
    assert await socket.receive_nothing()
    await socket.disconnect()


async def test_what_was_told_and_lost_is_told_again_once(
    viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "LOOK", 0.1)
    monkeypatch.setattr(Broadcaster, "put", lambda *_: None)  # each hint is lost
    order = await sync_to_async(place_order)(Destination.BOTH, "50 MWh")
    socket = await opened(viewer, f"watch=instance:{order.process_id}&watch=events")

    await sync_to_async(drain)()
    now = await ProcessInstance.objects.aget(pk=order.process_id)
    while (hint := await told(socket))["revision"] < now.revision:
        pass

    assert hint["again"]
    assert (hint["status"], list(hint["steps"])) == (now.status, [now.step])
    assert await socket.receive_nothing(timeout=0.5)  # it looks five times meanwhile
    await socket.disconnect()


async def test_pages_stay_open_while_the_database_does_not_say_how_far_processes_are(
    viewer: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = asyncio.Event()

    async def away(known: object) -> list[Change]:
        asked.set()
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(audience, "LOOK", 0.05)
    monkeypatch.setattr(consumers, "newest_changes", away)
    socket = await opened(viewer, f"watch=instance:{uuid4()}")

    await asked.wait()
    assert await stays_open(socket)
    assert "not looked for" in caplog.text
    await socket.disconnect()


async def test_a_socket_that_the_layer_has_forgotten_closes(
    viewer: User, quickly: pytest.MonkeyPatch
) -> None:
    quickly.setattr(audience, "ANSWER", 0.2)
    socket = await opened(viewer)

    async def lost(*_: object) -> None:
        """The message goes nowhere."""

    quickly.setattr(get_channel_layer(), "send", lost)

    assert await closed(socket) == 1012


async def test_a_burst_of_changes_is_one_hint_that_keeps_the_whole_path() -> None:
    def hint(revision: int, *edges: str, **steps: str) -> dict[str, Any]:
        return {"id": "1", "revision": revision, "steps": steps, "edges": [*edges]}

    first = hint(2, "e1", A="done", B="waiting")
    second = hint(3, "e2", B="done", C="waiting")

    whole = hint(3, "e1", "e2", A="done", B="done", C="waiting")
    assert merge_hints(first, second) == merge_hints(second, first) == whole


async def test_a_hint_stays_short_however_many_branches_a_change_has_taken() -> None:
    wide = change(edge=",".join(f"e{number}" for number in range(10_000)))

    hint = change_hint(wide)

    assert hint["edges"] == [f"e{number}" for number in range(100)]
    assert len(merge_hints({**hint, "revision": 1}, hint)["edges"]) == 100


async def test_a_dead_channel_layer_never_reaches_the_code_that_commits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class DeadLayer:
        async def group_send(self, *_: object) -> None:
            raise ConnectionError("gone")

    monkeypatch.setattr("monitoring.live.broadcaster.get_channel_layer", DeadLayer)
    broadcaster = Broadcaster()

    for revision in range(100):
        broadcaster.put(change(revision=revision))
    flushed = await asyncio.to_thread(broadcaster.flush, A_MINUTE)

    assert flushed
    assert sum("not told" in line for line in caplog.messages) == 1


async def test_all_pages_of_a_web_server_have_one_subscription_until_the_last_is_gone(
    viewer: User, valkey: ValkeyServer
) -> None:
    sockets = [await opened(viewer) for _ in range(3)]

    with valkey.client() as client:
        channels = [name.decode() for name in client.pubsub_channels("asgi*")]
        [(_, followers)] = client.pubsub_numsub("asgi__group__overview")
        Broadcaster().put(change(revision=4))
        hints = [await told(socket) for socket in sockets]

        assert len(channels) == 2  # its own, and the group's
        assert followers == 1
        assert [hint["revision"] for hint in hints] == [4, 4, 4]
        for socket in sockets:
            await socket.disconnect()
        assert client.pubsub_channels("asgi*") == []
    again = await opened(viewer)
    assert await stays_open(again)
    await again.disconnect()


async def test_many_changes_are_few_hints_up_to_the_last_state(viewer: User) -> None:
    socket = await opened(viewer)
    broadcaster = Broadcaster()
    for revision in range(1, 501):
        broadcaster.put(change(revision=revision))

    revisions = [0]
    while revisions[-1] < 500:
        revisions.append((await told(socket))["revision"])

    assert len(revisions) < 50
    assert revisions == sorted(revisions)
    await socket.disconnect()


class Layer(InMemoryChannelLayer):  # type: ignore[misc]  # channels has no types
    """The channel layer of one event loop, as a project without Redis has it."""


@pytest.fixture
def in_memory(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": f"{Layer.__module__}.{Layer.__name__}"}
    }


async def test_a_layer_in_memory_tells_pages(viewer: User, in_memory: None) -> None:
    sockets = [await opened(viewer) for _ in range(2)]

    hint = {
        "type": "live.change",
        "group": "overview",
        **change_hint(change(revision=2)),
    }
    await get_channel_layer().group_send("overview", hint)

    assert [(await told(socket))["revision"] for socket in sockets] == [2, 2]
    for socket in sockets:
        await socket.disconnect()


async def test_a_layer_or_a_database_that_does_not_answer_lets_no_page_wait(
    viewer: User, in_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object) -> None:
        await asyncio.Event().wait()

    asked = ((audience, Layer, "group_add"), (consumers, consumers, "close_code"))
    for module, target, name in asked:
        with monkeypatch.context() as patch:
            patch.setattr(module, "ANSWER", 0.1)
            patch.setattr(target, name, silent)
            assert await closed(await opened(viewer)) == 1012


async def test_signing_out_elsewhere_closes_the_pages_of_that_session_alone(
    viewer: User, operator: User, quickly: pytest.MonkeyPatch
) -> None:
    mine, others = await opened(viewer), await opened(operator)

    await sync_to_async(viewer.set_password)("another-password-1")
    await sync_to_async(viewer.save)()

    assert await closed(mine) == 4401
    assert (await told(others))["beat"] is True
    await others.disconnect()


async def test_a_page_that_does_not_read_holds_nobody_up_and_is_let_go(
    viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, frozen = asyncio.Event(), asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "websocket.send":
            frozen.set()
            await reading.wait()

    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inbox.put_nowait({"type": "websocket.connect"})
    scope = {
        "type": "websocket",
        "path": "/ws/live/",
        "query_string": b"watch=overview",
        "headers": await headers_of(viewer),
    }
    slow = asyncio.create_task(application(scope, inbox.get, send))
    quick = await opened(viewer)
    broadcaster = Broadcaster()
    broadcaster.put(change(revision=1))
    await asyncio.wait_for(frozen.wait(), A_MINUTE)

    broadcaster.put(change(revision=2))

    assert [(await told(quick))["revision"] for _ in range(2)] == [1, 2]
    monkeypatch.setattr(consumers, "SLOW", 0.1)
    reading.set()  # and reads no more from here on
    reading.clear()
    await asyncio.wait_for(slow, A_MINUTE)
    await quick.disconnect()


async def test_s12_1_a_socket_tells_of_that_definition_alone(
    parcels: None, stranger: User, valkey: ValkeyServer, quickly: pytest.MonkeyPatch
) -> None:
    ann = await sync_to_async(let_see)(stranger, ORDERS, VIEW)
    order = await sync_to_async(failed_order)()
    parcel = await sync_to_async(place)("P-1")
    others = ("overview", "events", "bulk", f"definition:{PARCELS}")
    for subject in (*others, f"instance:{parcel.pk}"):
        socket = await opened(ann, f"watch={subject}")
        assert await closed(socket) == 4403, subject

    own = f"watch=instance:{order.pk}&watch=overview&watch=definition:{ORDERS}"
    socket = await opened(ann, own)
    assert await stays_open(socket)
    with valkey.client() as client:
        found = client.pubsub_channels("asgi__group__*")
    followed = {name.decode().removeprefix("asgi__group__") for name in found}
    assert followed == {f"instance.{order.pk.hex}", f"definition.{ORDERS}"}
    await sync_to_async(DefinitionGrant.objects.all().delete)()
    assert await closed(socket) == 4403
