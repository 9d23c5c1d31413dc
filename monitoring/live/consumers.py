"""The socket of an open page. It says that something changed, and never sends data.

It keeps at most one unsent hint for each subject, so a slow page takes no memory and delays no other page.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.utils.module_loading import import_string

from monitoring.base.access import (
    EVENTS,
    Names,
    definitions_visible_to,
    may_view,
    names_of_operation,
    names_of_process,
)
from monitoring.live.audience import (
    ANSWER,
    FORBIDDEN,
    MALFORMED,
    RESTART,
    SIGNED_OUT,
    PageNeeds,
    audience,
)
from monitoring.live.broadcaster import Hint, merge_hints
from monitoring.live.newest_changes import changes_after
from orchestrator.serving.bodies import AsgiReceive, AsgiSend

logger = logging.getLogger(__name__)

SLOW = 15.0
"""Seconds that a page may take to read a hint before its socket is closed."""

LONGEST_NAME = 100
"""Characters of a definition's name."""

SUBJECTS = 8
"""Subjects that one page may watch at most."""


async def live_app(scope: dict[str, Any], receive: AsgiReceive, send: AsgiSend) -> None:
    """Answer `/ws/live/?watch=instance:<uuid>&watch=definition:<name>&watch=operation:<uuid>&watch=overview&…`."""
    with contextlib.suppress(OSError):  # the page went away while it was written to
        await OpenPage(scope, send).serve(receive)


class OpenPage:
    """One socket, for as long as it is open."""

    def __init__(self, scope: dict[str, Any], send: AsgiSend) -> None:
        self.session: str | None = scope["session"].session_key
        try:
            query = scope["query_string"].decode("latin-1")
            self.groups = list(dict.fromkeys(groups_in_query(query)))
        except ValueError:
            self.groups = []
        self._send = send
        self.needs: PageNeeds = "events" in self.groups
        self._unsent: dict[str, tuple[Hint, str]] = {}
        self._wake = asyncio.Event()
        self._open = True
        self._code = 0

    def tell(self, subject: str, hint: Hint, text: str) -> None:
        """Queue a hint, which `text` has as JSON; an unsent hint of the same subject is merged with it."""
        if subject in self._unsent:
            hint = merge_hints(self._unsent[subject][0], hint)
            text = json.dumps(hint)
        self._unsent[subject] = hint, text
        self._wake.set()

    def close(self, code: int = 0) -> None:
        """End the socket: close it with `code`, or with 0 leave it, since the page has gone."""
        self._open, self._code = False, code
        self._wake.set()

    async def serve(self, receive: AsgiReceive) -> None:
        """Send hints until the page goes or loses its permission.

        Raises:
            OSError: the page went during a write, or did not read for `SLOW` seconds.
        """
        await receive()  # the request to connect
        if code := await self._code_now():
            await self._refuse(code)
            return
        followed = audience(close_code, newest_changes)
        try:
            await followed.join(self)
        except Exception as error:  # noqa: BLE001  the channel layer is down, in whatever way
            logger.warning("An open page is to connect anew: %r", error)
            await self._refuse(RESTART)
            return
        reading = asyncio.create_task(self._read(receive))
        try:
            # The page fetches when it is accepted, so it misses nothing.
            await self._say("websocket.accept")
            await self._send_hints()
        finally:
            reading.cancel()
            await followed.leave(self)

    async def _refuse(self, code: int) -> None:
        # Without it the page does not learn the code.
        await self._say("websocket.accept")
        await self._say("websocket.close", code=code)

    async def _read(self, receive: AsgiReceive) -> None:
        """Wait until the page has gone, and ignore its messages."""
        while (await receive())["type"] != "websocket.disconnect":
            pass
        self.close()

    async def _send_hints(self) -> None:
        while self._open:
            await self._wake.wait()
            self._wake.clear()
            while self._unsent and self._open:
                _, text = self._unsent.pop(next(iter(self._unsent)))
                await self._say("websocket.send", text=text)
        if self._code:
            await self._say("websocket.close", code=self._code)

    async def _say(self, what: str, **about: Any) -> None:
        async with asyncio.timeout(SLOW):
            await self._send({"type": what, **about})

    async def _code_now(self) -> int:
        """Return the code to close the page with; 0 if it may be open."""
        try:
            async with asyncio.timeout(ANSWER):
                code = await close_code(self.session, self.needs)
                if code == FORBIDDEN and (
                    mine := await granted_groups(self.session, self.groups)
                ):
                    code, self.groups = 0, list(mine)
                    self.needs = frozenset().union(*mine.values())
        except Exception as error:  # noqa: BLE001  whatever failed, it may work when the page connects again
            logger.warning("An open page is to connect anew: %r", error)
            return RESTART
        return code or (0 if self.groups else MALFORMED)


@database_sync_to_async  # type: ignore[untyped-decorator]  # channels has no types
def close_code(session: str | None, needs: PageNeeds) -> int:
    """Return the code to close a page with, by session and permissions in the database; 0 when both suffice."""
    user = _session_user(session)
    if user is None:
        return SIGNED_OUT
    if isinstance(needs, frozenset):
        seen = definitions_visible_to(user)
        return 0 if seen is None or needs <= seen else FORBIDDEN
    return 0 if may_view(user, *([EVENTS] if needs else [])) else FORBIDDEN


@database_sync_to_async  # type: ignore[untyped-decorator]  # channels has no types
def granted_groups(session: str | None, groups: list[str]) -> dict[str, Names]:
    """Return the groups whose definitions the reader may see, each with these definitions."""
    user = _session_user(session)
    seen = definitions_visible_to(user) if user is not None else None
    named = {group: _definitions_of(group) for group in groups} if seen else {}
    return {
        group: names
        for group, names in named.items()
        if seen and names and names <= seen
    }


def _definitions_of(group: str) -> Names:
    kind, _, name = group.partition(".")
    if kind == "instance":
        return names_of_process(UUID(name))
    if kind == "operation":
        return names_of_operation(UUID(name))
    return frozenset([name] if kind == "definition" else [])


def _session_user(session: str | None) -> Any:
    """Return the active user of a session; None without one."""
    if not session or "\0" in session:  # databases store no NUL
        return None
    request = HttpRequest()
    request.session = import_string(f"{settings.SESSION_ENGINE}.SessionStore")(session)
    user = get_user(request)
    return user if user.is_authenticated and user.is_active else None


newest_changes = database_sync_to_async(changes_after)


def groups_in_query(query: str) -> Iterator[str]:
    """Yield the groups of the subjects in an address.

    Raises:
        ValueError: a subject is not one, or there are too many.
    """
    subjects = parse_qs(query).get("watch", [])
    if not 0 < len(subjects) <= SUBJECTS:
        raise ValueError(f"watch between 1 and {SUBJECTS} subjects")
    for subject in subjects:
        kind, _, name = subject.partition(":")
        if kind in ("instance", "operation"):
            yield f"{kind}.{UUID(name).hex}"
        elif (
            kind == "definition"
            and name.replace("-", "").replace("_", "").isalnum()
            and name.isascii()
        ):
            yield f"definition.{name[:LONGEST_NAME]}"
        elif subject in ("overview", "events", "bulk"):
            yield subject
        else:
            raise ValueError(f"nothing to watch under {subject!r}")
