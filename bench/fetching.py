"""Clients that act as an open page of a process does: they listen, and fetch its live parts on each hint.

As a page, they survive errors: they repeat a request without an answer, and reconnect after a lost connection.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from urllib.parse import urlsplit
from uuid import UUID

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from bench.sockets import Sockets, Told

# As in static/monitoring/live.js.
QUICK, BESIDE, LATE, RESYNC, SETTLED = 0.12, 2.0, 1.0, 10.0, 1.5
ANSWER = 10.0
"""Seconds after which a client gives a request up, as templates/monitoring/base.html says."""

SHOWN = re.compile(rb'data-revision="(\d+)"')
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class FetchingPages(Sockets):
    """Pages that each show a process of their own, the first subject that they watch."""

    async def listen(
        self, number: int, socket: ClientConnection, told: list[Told]
    ) -> None:
        """Note the hints of a page, and fetch as its script does."""
        page = FetchingPage(
            self.site,
            self.cookie,
            UUID(self.watch[number].split()[0].partition(":")[2]),
            partial(self.shows, number),
        )
        fetching = asyncio.create_task(page.fetch())
        try:
            while True:
                settling = page.connected()
                with suppress(ConnectionClosed):
                    await self._hear(number, socket, page, told)
                settling.cancel()
                socket = await self._connect_anew(number, page)
        finally:
            fetching.cancel()

    def shows(self, number: int, revision: int) -> None:
        """Take note that a page has fetched, and shows this revision of its process."""

    def paints(self, number: int, revision: int) -> None:
        """Take note that a page has a hint of this revision of its process, and paints it."""

    async def _hear(
        self,
        number: int,
        socket: ClientConnection,
        page: FetchingPage,
        told: list[Told],
    ) -> None:
        async for message in socket:
            at, hint = time.time(), json.loads(message)
            page.hear(hint)
            if hint.get("id") == str(page.process):
                told.append(Told(number, at, page.process, hint["revision"]))
                self.paints(number, hint["revision"])

    async def _connect_anew(self, number: int, page: FetchingPage) -> ClientConnection:
        while True:
            await asyncio.sleep(page.pause())
            with suppress(OSError, WebSocketException):
                return await self.connect(number)


@dataclass
class FetchingPage:
    """The times and the addresses of one page's fetches."""

    site: str
    cookie: str
    process: UUID
    shows: Callable[[int], object] = int
    """Is told the revision that an answer had."""
    shown: int = -1
    fetched: int = 0
    failures: int = 0
    unanswered: int = 0
    pace: float = 0.0
    due: float = inf
    last: float = 0.0
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def connected(self) -> asyncio.TimerHandle:
        """Fetch what it may have missed, and again after `SETTLED` seconds of the connection."""
        self.soon(QUICK)
        return asyncio.get_running_loop().call_later(SETTLED, self._settled)

    def _settled(self) -> None:
        self.failures = 0
        self.soon(QUICK)

    def pause(self) -> float:
        """Return the seconds until it reconnects: more after each failure."""
        self.failures += 1
        return min(8, 0.4 * 2.0**self.failures) * random.uniform(0.5, 1)  # noqa: S311  # no secret

    def hear(self, hint: dict[str, object]) -> None:
        """Fetch after a hint, sooner if its own process has changed."""
        self.pace = float(str(hint.get("pace", self.pace)))
        if "revision" in hint:
            own = hint.get("id") == str(self.process)
            if own and hint.get("again") and self.shown >= int(str(hint["revision"])):
                return
            self.soon(QUICK if own else BESIDE)

    def soon(self, pause: float, pace: float | None = None) -> None:
        """Fetch when the pause, or the pace of all pages, has passed since the last fetch."""
        pace = self.pace if pace is None else pace
        self.due = min(self.due, max(time.monotonic(), self.last + max(pause, pace)))
        self.told.set()

    async def fetch(self) -> None:
        """Fetch whenever it is due, at least every RESYNC seconds, as long as the page is open."""
        looks = time.monotonic() + RESYNC
        while True:
            while (left := min(self.due, looks) - time.monotonic()) > 0:
                self.told.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.told.wait(), left)
            if time.monotonic() >= looks:
                looks += RESYNC
                self.soon(QUICK)
                continue
            self.due = inf
            late = await self._ask_in_time()
            self.last = time.monotonic()
            if late:
                self.soon(LATE, 0)

    async def _ask_in_time(self) -> bool:
        """Send a request; return whether the server had no time for an answer."""
        try:
            async with asyncio.timeout(ANSWER):
                late = not await self._ask()
        except OSError:  # it asks again, in RESYNC seconds
            self.unanswered += 1
            return False
        self.unanswered = self.unanswered + 1 if late else 0
        return late

    async def _ask(self) -> bool:
        place = urlsplit(self.site)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            writer.write(
                f"GET /processes/{self.process}/?since={max(self.shown, 0)} HTTP/1.1\r\nHost: {place.netloc}\r\n"
                f"Cookie: {self.cookie}\r\nHX-Request: true\r\n"
                f"Procession-Unanswered: {self.unanswered}\r\nConnection: close\r\n\r\n".encode()
            )
            answer = await reader.read(-1)
        finally:
            writer.close()
        if answer.startswith(b"HTTP/1.1 503") and b"procession-late" in answer:
            return False
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(f"a page was answered {answer[:200]!r}")
        self.fetched += 1
        if shown := SHOWN.search(answer):
            self.shown = int(shown[1])
            self.shows(self.shown)
        return True
