"""Clients that do what an open page of a process does: they listen, and fetch its live parts when they are told."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import UUID

from websockets.asyncio.client import ClientConnection

from bench.sockets import Sockets, Told

# As in static/monitoring/live.js.
QUICK, BESIDE, RESYNC = 0.12, 2.0, 10.0

SHOWN = re.compile(rb'data-revision="(\d+)"')
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class FetchingPages(Sockets):
    """Pages that are each open on a process of their own, the first subject that they watch."""

    async def listen(
        self, number: int, socket: ClientConnection, told: list[Told]
    ) -> None:
        """Notes what a page is told, and fetches as its script does."""
        page = FetchingPage(
            self.site,
            self.cookie,
            UUID(self.watch[number].split()[0].partition(":")[2]),
        )
        fetching = asyncio.create_task(page.fetch())
        try:
            async for message in socket:
                at, hint = time.time(), json.loads(message)
                page.hear(hint)
                if hint.get("id") == str(page.process):
                    told.append(Told(number, at, page.process, hint["revision"]))
        finally:
            fetching.cancel()


@dataclass
class FetchingPage:
    """When one page fetches, and what."""

    site: str
    cookie: str
    process: UUID
    revision: str = ""
    fetched: int = 0
    pace: float = 0.0
    due: float = 0.0
    last: float = 0.0
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, hint: dict[str, object]) -> None:
        """Fetches the sooner when its own process has changed."""
        self.pace = float(str(hint.get("pace", self.pace)))
        if "revision" in hint:
            own = hint.get("id") == str(self.process)
            self.soon(QUICK if own else BESIDE)

    def soon(self, pause: float) -> None:
        """Fetches when that pause, or the pace all are asked for, has gone by since the last fetch."""
        when = max(time.monotonic(), self.last + max(pause, self.pace))
        self.due = min(self.due, when) if self.due else when
        self.told.set()

    async def fetch(self) -> None:
        """Fetches whenever it is due, for as long as the page is open."""
        self.soon(QUICK)
        while True:
            while (left := self.due - time.monotonic()) > 0:
                self.told.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.told.wait(), left)
            self.due = time.monotonic() + RESYNC
            begun = self.last = time.monotonic()
            await self._ask()
            self.last += time.monotonic() - begun

    async def _ask(self) -> None:
        place = urlsplit(self.site)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            writer.write(
                f"GET /processes/{self.process}/?since={self.revision} HTTP/1.1\r\nHost: {place.netloc}\r\n"
                f"Cookie: {self.cookie}\r\nHX-Request: true\r\nConnection: close\r\n\r\n".encode()
            )
            answer = await reader.read(-1)
        finally:
            writer.close()
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(f"a page was answered {answer[:200]!r}")
        self.fetched += 1
        if shown := SHOWN.search(answer):
            self.revision = shown[1].decode()
