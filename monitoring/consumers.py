"""The socket of an open page: says that something changed, never what the data is.

It holds at most one unsent hint for each subject, so a slow page costs no memory. Every `CHECK` seconds it looks again
at session and permission, joins its groups again, and sends itself a canary through the channel layer: a socket that
the layer has forgotten closes, and the page connects anew.
"""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID, uuid4

from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.utils.module_loading import import_string

from monitoring.access import may_view
from monitoring.broadcaster import merged

CHECK = 15.0
"""Seconds between two looks at session, permission and channel layer."""

CANARY = 5.0
"""Seconds that a message to oneself may take through the layer."""

SLOW = 15.0
"""Seconds a page may take to read a hint before it is let go."""

SUBJECTS = 8
"""Subjects that one page may watch."""

SIGNED_OUT, FORBIDDEN, RESTART, MALFORMED = 4401, 4403, 1012, 4400


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """`/ws/live/?watch=instance:<uuid>&watch=definition:<name>&watch=overview&watch=events`"""

    async def connect(self) -> None:
        self.groups_joined: list[str] = []
        self.unsent: dict[str, dict[str, Any]] = {}
        self.wake = asyncio.Event()
        self.canary = asyncio.Event()
        self.canary_id = ""
        self.loops: list[asyncio.Task[None]] = []
        try:
            wanted = list(groups_wanted(self.scope["query_string"].decode("latin-1")))
        except ValueError:
            wanted = []
        if code := await self.close_code(wanted) or (0 if wanted else MALFORMED):
            await self.accept()  # only so does the page learn the reason
            await self.close(code)
            return
        await self.join(wanted)
        # The page fetches when it is accepted; from here on it misses nothing.
        await self.accept()
        self.loops = [
            asyncio.create_task(self.send_hints()),
            asyncio.create_task(self.guard()),
        ]

    async def disconnect(self, code: int) -> None:
        for loop in self.loops:
            loop.cancel()
        # The layer may be away, and forgets by itself.
        with contextlib.suppress(Exception):
            for group in self.groups_joined:
                await self.channel_layer.group_discard(group, self.channel_name)
        raise StopConsumer

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """A page has nothing to say here; what it sends is not looked at."""

    async def join(self, wanted: list[str]) -> None:
        for group in wanted:
            await self.channel_layer.group_add(group, self.channel_name)
        self.groups_joined = wanted

    async def live_change(self, message: dict[str, Any]) -> None:
        """A hint from the broadcaster; the newest for a subject replaces an unsent one."""
        hint = {key: value for key, value in message.items() if key != "type"}
        subject = hint.get("id") or hint.get("name") or "events"
        self.unsent[subject] = merged(self.unsent.get(subject), hint)
        while len(self.unsent) > SUBJECTS * 8:
            self.unsent.pop(next(iter(self.unsent)))
        self.wake.set()

    async def live_canary(self, message: dict[str, Any]) -> None:
        if message.get("canary") == self.canary_id:
            self.canary.set()

    async def send_hints(self) -> None:
        while True:
            await self.wake.wait()
            self.wake.clear()
            while self.unsent:
                hint = self.unsent.pop(next(iter(self.unsent)))
                try:
                    await asyncio.wait_for(self.send(json.dumps(hint)), SLOW)
                except TimeoutError:
                    await self.close(RESTART)
                    return

    async def guard(self) -> None:
        while True:
            await asyncio.sleep(CHECK)
            if code := await self.close_code(self.groups_joined):
                await self.close(code)
                return
            try:
                await asyncio.wait_for(self.prove_connection(), CANARY)
                await asyncio.wait_for(self.send('{"beat": true}'), SLOW)
            except Exception:  # noqa: BLE001  a new connection is the cure for all
                await self.close(RESTART)
                return

    async def prove_connection(self) -> None:
        """Joins the groups again, and waits for a message to oneself to come back through the layer."""
        await self.join(self.groups_joined)
        self.canary.clear()
        self.canary_id = uuid4().hex
        await self.channel_layer.send(
            self.channel_name, {"type": "live.canary", "canary": self.canary_id}
        )
        await self.canary.wait()

    async def close_code(self, groups: list[str]) -> int:
        """The code to close with, as session and permissions stand in the database now; 0 when they are good."""
        key = self.scope["session"].session_key
        allowed = await current_user(key, "events" in groups)
        if allowed is None:
            return SIGNED_OUT
        return 0 if allowed else FORBIDDEN


@database_sync_to_async  # type: ignore[untyped-decorator]  # channels has no types
def current_user(session_key: str | None, events: bool) -> bool | None:
    """None without a session that is signed in, else whether its user may watch, events too if those are wanted."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_string(f"{settings.SESSION_ENGINE}.SessionStore")(
        session_key
    )
    user = get_user(request)
    if not (user.is_authenticated and user.is_active):
        return None
    return may_view(user, events=events)


def groups_wanted(query: str) -> Iterator[str]:
    """The groups of the subjects a page names.

    Raises:
        ValueError: a subject is not one, or there are too many.
    """
    subjects = parse_qs(query).get("watch", [])
    if not 0 < len(subjects) <= SUBJECTS:
        raise ValueError(f"watch between 1 and {SUBJECTS} subjects")
    for subject in subjects:
        kind, _, name = subject.partition(":")
        if kind == "instance":
            yield f"instance.{UUID(name).hex}"
        elif (
            kind == "definition"
            and name.replace("-", "").replace("_", "").isalnum()
            and name.isascii()
        ):
            yield f"definition.{name[:80]}"
        elif subject in ("overview", "events"):
            yield subject
        else:
            raise ValueError(f"nothing to watch under {subject!r}")
