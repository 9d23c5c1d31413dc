"""The open pages of one web server, and the one subscription to the channel layer that they share.

A hint costs only its followers. The layer delivers it once to each web server, the server encodes it once, and writes
it to the sockets of the pages that follow its group. The pause between two hints for a group grows with the number of
its pages. Hints that come in the pause become one, so every page learns the last state.

Every `CHECK` seconds the audience checks each page's session and permissions, joins its groups again, and sends itself
a probe through the layer. When the probe does not come back, it closes all pages, and they connect again.

A hint can get lost. Every `LOOK` seconds the audience asks the database for the newest revision of each followed
process, and tells the pages of those that are ahead of the last hint.
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

from monitoring.live.broadcaster import Hint, change_hint, merge_hints
from monitoring.live.turns import need
from orchestrator.signals import Change

logger = logging.getLogger(__name__)

CHECK = 15.0
"""Seconds between two checks of the sessions, the permissions and the channel layer."""

LOOK = 3.0
"""Seconds between two questions for the newest revisions of the followed processes."""

ANSWER = 5.0
"""Seconds that the channel layer or the database may take to answer."""

TELLING = 0.000_05
"""Seconds of pause after a hint, for each page that got it."""

OF_PROCESS = "instance."
"""The prefix of the groups of single processes."""

SIGNED_OUT, FORBIDDEN, RESTART, MALFORMED = 4401, 4403, 1012, 4400
"""The close codes of sockets."""


class Follower(Protocol):
    """An open page, as the audience uses it."""

    groups: list[str]
    session: str | None

    @property
    def needs(self) -> PageNeeds:
        """The permissions that its reader must have."""

    def tell(self, subject: str, hint: Hint, text: str) -> None:
        """Send a hint to the page, merged with an unsent hint about the same subject."""

    def close(self, code: int) -> None:
        """Close the page with a close code."""


PageNeeds = bool | frozenset[str]
"""Whether a page shows events besides all processes; or the definitions whose processes it shows."""

CloseCode = Callable[[str | None, PageNeeds], Awaitable[int]]
"""The close code for pages of a session with such needs, by the permissions of now; 0 if they may stay."""

NewestChanges = Callable[[Mapping[UUID, int]], Awaitable[Sequence[Change]]]
"""The newest change of each process whose revision is above the given one."""


@dataclass
class Group:
    """The pages that follow one subject, and the hint that is not sent yet."""

    pages: set[Follower] = field(default_factory=set)
    unsent: Hint | None = None
    told_at: float = float("-inf")
    revision: int = -1
    """The newest revision in a hint, where the subject is a process."""


class Audience:
    """The open pages of one event loop. It ends with the last page."""

    def __init__(self, close_code: CloseCode, newest_changes: NewestChanges) -> None:
        self.ended = False
        self._close_code = close_code
        self._newest_changes = newest_changes
        self._layer: Any = get_channel_layer()
        self._channel = ""
        self._pages: set[Follower] = set()
        self._groups: dict[str, Group] = {}
        self._joining = asyncio.Lock()
        self._probe = ""
        self._probe_returned = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pages(self) -> frozenset[Follower]:
        """The open pages."""
        return frozenset(self._pages)

    async def join(self, page: Follower) -> None:
        """Add a page: every change that is committed after this returns reaches it.

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
                for task in (self._listen, self._check, self._find_lost)
            ]
        for name in names:
            if name not in self._groups:
                await self._layer.group_add(name, self._channel)
                self._groups[name] = Group()

    async def leave(self, page: Follower) -> None:
        """Remove a page. The next check, or the end of the last page, leaves groups without pages."""
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
        # The layer may be down; it forgets memberships by itself.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(ANSWER):
                for name in names:
                    del self._groups[name]
                    await self._layer.group_discard(name, self._channel)

    async def _or_restart(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task of the audience. When it fails, all pages are closed and connect again."""
        try:
            await task()
        except Exception as error:  # noqa: BLE001  whatever it was
            logger.warning("Open pages are to connect anew: %r", error)
            self.ended = True
            for page in self._pages:
                page.close(RESTART)

    # Hints

    async def _listen(self) -> None:
        while True:
            message = await self._layer.receive(self._channel)
            if message["type"] == "live.change":
                self._queue(message)
            elif message.get("probe") == self._probe:
                self._probe_returned.set()

    def _queue(self, message: dict[str, Any]) -> None:
        """Queue a hint until the pause of its group is over, which is mostly at once."""
        name = message.get("group", "")
        group = self._groups.get(name)
        if group is None or not group.pages:
            return
        hint = {key: message[key] for key in message if key not in ("type", "group")}
        group.revision = max(group.revision, hint.get("revision", -1))
        waits = group.unsent is not None
        group.unsent = merge_hints(group.unsent, hint)
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
            page.tell(name, hint, text)
        group.told_at = asyncio.get_running_loop().time()

    # Checks

    async def _find_lost(self) -> None:
        """Send the hints that may have got lost, and the newest revision of newly followed processes."""
        while True:
            await asyncio.sleep(LOOK)
            known = {
                UUID(name.removeprefix(OF_PROCESS)): group.revision
                for name, group in self._groups.items()
                if name.startswith(OF_PROCESS) and group.pages
            }
            try:
                changes = await self._newest_changes(known) if known else ()
            except Exception as error:  # noqa: BLE001  the database is down; pages ask by themselves
                logger.warning("Lost hints are not looked for just now: %r", error)
                continue
            for change in changes:
                if change.process_id is not None:
                    group = f"{OF_PROCESS}{change.process_id.hex}"
                    self._queue({**change_hint(change), "again": True, "group": group})

    async def _check(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            await self._check_sessions(begun)
            await asyncio.sleep(max(0.0, begun + CHECK - clock()))
            async with asyncio.timeout(ANSWER):
                await self._prove_connection()

    async def _check_sessions(self, begun: float) -> None:
        """Close the pages of sessions without permission, and tell the others that they are connected.

        The checks are spread evenly over `CHECK` seconds, since all at once would load the database.
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
                    page.close(code)
                else:
                    page.tell("beat", beat, json.dumps(beat))

    async def _close_code_now(self, session: str | None, needs: PageNeeds) -> int:
        """Return the code to close a session's pages with; pages whose check fails must connect again.

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
        """Join the groups again, and wait until the probe comes back through the layer."""
        async with self._joining:
            await self._discard([n for n, it in self._groups.items() if not it.pages])
            for name in self._groups:
                await self._layer.group_add(name, self._channel)
        self._probe_returned.clear()
        self._probe = uuid4().hex
        probe = {"type": "live.probe", "probe": self._probe}
        await self._layer.send(self._channel, probe)
        await self._probe_returned.wait()


_audiences: WeakKeyDictionary[asyncio.AbstractEventLoop, Audience] = WeakKeyDictionary()


def audience(close_code: CloseCode, newest_changes: NewestChanges) -> Audience:
    """Return the audience of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _audiences.get(loop)
    if found is None or found.ended:
        found = _audiences[loop] = Audience(close_code, newest_changes)
    return found


def open_pages() -> int:
    """Return the number of open pages of this web server."""
    return sum(len(one.pages) for one in list(_audiences.values()))
