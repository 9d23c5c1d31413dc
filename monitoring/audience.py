"""The open pages of one web server, and the one subscription to the channel layer that they share.

A hint costs its followers and nobody else: it comes through the layer once for each web server, is encoded once, and
is written to the sockets of the pages that follow its group. The more pages follow a group, the longer the pause
between two hints for it; what comes meanwhile is one hint, and the last state is always told.

Once in `CHECK` seconds it looks again at every page's session and permissions, joins its groups anew, and sends itself
a canary through the layer: when the layer has forgotten it, all its pages are closed, and connect anew.

A hint can be lost on its way. Once in `LOOK` seconds it asks the database how far all followed processes have come, and
tells the newest change of those of which it was told less.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from monitoring.broadcaster import Hint, as_hint, merged
from monitoring.turns import need
from orchestrator.signals import Change

logger = logging.getLogger(__name__)

CHECK = 15.0
"""Seconds within which each page's session and permissions, and the channel layer, are looked at again."""

LOOK = 3.0
"""Seconds after which it looks again how far the processes have come that are followed."""

ANSWER = 5.0
"""Seconds that the channel layer or the database may take to answer."""

TELLING = 0.000_05
"""Seconds of pause after a hint for each page that it was told."""

OF_PROCESS = "instance."
"""How the names of groups begin that follow one process."""

SIGNED_OUT, FORBIDDEN, RESTART, MALFORMED = 4401, 4403, 1012, 4400
"""What sockets are closed with."""


class Follower(Protocol):
    """An open page, as its audience sees it."""

    groups: list[str]
    session: str | None

    @property
    def needs(self) -> Needs:
        """What its reader must be allowed to see."""

    def hear(self, subject: str, hint: Hint, text: str) -> None:
        """Is told something; what it has not yet been sent of the same subject is told with it."""

    def let_go(self, code: int) -> None:
        """Is closed, for the reason `code`."""


Needs = bool | frozenset[str]
"""All processes, and whether events too; or the processes of these definitions alone."""

CloseCode = Callable[[str | None, Needs], Awaitable[int]]
"""What pages of a session that need so much are closed with as things stand now; 0 if they may stay."""

NewestChanges = Callable[[Mapping[UUID, int]], Awaitable[Sequence[Change]]]
"""The newest change of each of these processes that has come further than the revision that stands beside it."""


@dataclass
class Group:
    """Who follows one subject, and what they are still to be told of it."""

    pages: set[Follower] = field(default_factory=set)
    unsent: Hint | None = None
    told_at: float = float("-inf")
    revision: int = -1
    """The newest of which it was told, where the subject is a process."""


class Audience:
    """All pages that are open in one event loop. It ends with the last of them."""

    def __init__(self, close_code: CloseCode, newest_changes: NewestChanges) -> None:
        self.ended = False
        self._close_code = close_code
        self._newest_changes = newest_changes
        self._layer: Any = get_channel_layer()
        self._channel = ""
        self._pages: set[Follower] = set()
        self._groups: dict[str, Group] = {}
        self._joining = asyncio.Lock()
        self._canary = ""
        self._heard = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pages(self) -> frozenset[Follower]:
        """Those that follow it now."""
        return frozenset(self._pages)

    async def join(self, page: Follower) -> None:
        """Adds a page; when this returns, what is committed from now on reaches it.

        Raises:
            Exception: the channel layer cannot be reached, or does not answer in time.
        """
        try:
            async with asyncio.timeout(ANSWER), self._joining:
                await self._subscribe(page.groups)
                for name in page.groups:
                    self._groups[name].pages.add(page)
                self._pages.add(page)
        except BaseException:
            await self.leave(page)
            raise

    async def _subscribe(self, names: list[str]) -> None:
        if self.ended:
            raise ConnectionError("the channel layer had to be left")
        if not self._channel:
            self._channel = await self._layer.new_channel()
            self._tasks = [
                asyncio.create_task(self._or_restart(task))
                for task in (self._listen, self._guard, self._look)
            ]
        for name in names:
            if name not in self._groups:
                await self._layer.group_add(name, self._channel)
                self._groups[name] = Group()

    async def leave(self, page: Follower) -> None:
        """Takes a page out. Groups that nobody follows any more go at the next check, or with the last page."""
        self._pages.discard(page)
        for name in page.groups:
            if name in self._groups:
                self._groups[name].pages.discard(page)
        if not self._pages and not self._joining.locked():
            await self._end()

    async def _end(self) -> None:
        self.ended = True
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=ANSWER)
        await self._discard(list(self._groups))

    async def _discard(self, names: list[str]) -> None:
        # The layer may be away, and forgets by itself.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(ANSWER):
                for name in names:
                    del self._groups[name]
                    await self._layer.group_discard(name, self._channel)

    async def _or_restart(self, task: Callable[[], Awaitable[None]]) -> None:
        """Runs a task of the audience; when it fails, a new connection is the cure for all pages."""
        try:
            await task()
        except Exception as error:  # noqa: BLE001  whatever it was
            logger.warning("Open pages are to connect anew: %r", error)
            self.ended = True
            for page in self._pages:
                page.let_go(RESTART)

    # Telling

    async def _listen(self) -> None:
        while True:
            message = await self._layer.receive(self._channel)
            if message["type"] == "live.change":
                self._take(message)
            elif message.get("canary") == self._canary:
                self._heard.set()

    def _take(self, message: dict[str, Any]) -> None:
        """Keeps a hint until its group may be told again, which is mostly now."""
        name = message.get("group", "")
        group = self._groups.get(name)
        if group is None or not group.pages:
            return
        hint = {key: message[key] for key in message if key not in ("type", "group")}
        group.revision = max(group.revision, hint.get("revision", -1))
        waits = group.unsent is not None
        group.unsent = merged(group.unsent, hint)
        if not waits:
            pause = len(group.pages) * TELLING
            loop = asyncio.get_running_loop()
            loop.call_at(group.told_at + pause, self._tell, name, group)

    def _tell(self, name: str, group: Group) -> None:
        hint, group.unsent = group.unsent, None
        if hint is None:
            return
        hint["pace"] = need.pace(len(self._pages))
        text = json.dumps(hint)
        for page in group.pages:
            page.hear(name, hint, text)
        group.told_at = asyncio.get_running_loop().time()

    # Looking again

    async def _look(self) -> None:
        """Tells what may have been lost on its way; of a process that is followed anew, how far it has come."""
        while True:
            await asyncio.sleep(LOOK)
            known = {
                UUID(name.removeprefix(OF_PROCESS)): group.revision
                for name, group in self._groups.items()
                if name.startswith(OF_PROCESS) and group.pages
            }
            try:
                changes = await self._newest_changes(known) if known else ()
            except Exception as error:  # noqa: BLE001  the database is away; pages ask by themselves
                logger.warning("Lost hints are not looked for just now: %r", error)
                continue
            for change in changes:
                if change.process_id is not None:
                    group = f"{OF_PROCESS}{change.process_id.hex}"
                    self._take({**as_hint(change), "again": True, "group": group})

    async def _guard(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            await self._look_at_sessions(begun)
            await asyncio.sleep(max(0.0, begun + CHECK - clock()))
            async with asyncio.timeout(ANSWER):
                await self._prove_connection()

    async def _look_at_sessions(self, begun: float) -> None:
        """Closes the pages of sessions that may not watch any more; the others hear that they are connected.

        The sessions are looked at one after the other, evenly over the time there is: all at once would be a burden.
        """
        found = defaultdict(set)
        for page in self._pages:
            found[page.session, page.needs].add(page)
        clock = asyncio.get_running_loop().time
        for number, (about, pages) in enumerate(found.items(), 1):
            await asyncio.sleep(max(0.0, begun + CHECK * number / len(found) - clock()))
            code = await self._close_code_now(*about)
            beat = {"beat": True, "pace": need.pace(len(self._pages))}
            for page in pages & self._pages:
                if code:
                    page.let_go(code)
                else:
                    page.hear("beat", beat, json.dumps(beat))

    async def _close_code_now(self, session: str | None, needs: Needs) -> int:
        """The code to close a session's pages with; who cannot be looked at has to come again.

        Raises:
            TimeoutError: the database does not answer.
        """
        try:
            async with asyncio.timeout(ANSWER):
                return await self._close_code(session, needs)
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001  a project's own users may fail in any way
            logger.warning("Open pages of a session are to connect anew: %r", error)
            return RESTART

    async def _prove_connection(self) -> None:
        """Joins the groups again, and waits for a message to itself to come back through the layer."""
        async with self._joining:
            await self._discard([n for n, it in self._groups.items() if not it.pages])
            for name in self._groups:
                await self._layer.group_add(name, self._channel)
        self._heard.clear()
        self._canary = uuid4().hex
        canary = {"type": "live.canary", "canary": self._canary}
        await self._layer.send(self._channel, canary)
        await self._heard.wait()


_audiences: WeakKeyDictionary[asyncio.AbstractEventLoop, Audience] = WeakKeyDictionary()


def audience(close_code: CloseCode, newest_changes: NewestChanges) -> Audience:
    """The audience of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _audiences.get(loop)
    if found is None or found.ended:
        found = _audiences[loop] = Audience(close_code, newest_changes)
    return found


def open_pages() -> int:
    """How many pages are open on this web server."""
    return sum(len(one.pages) for one in list(_audiences.values()))
