"""Socket clients as open pages have, in a process of their own: they note the time of each hint."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from websockets.asyncio.client import ClientConnection, connect

OPENING = 20
"""How many clients connect at once."""


class Told(NamedTuple):
    """A hint, its socket and its time."""

    socket: int
    at: float
    process: UUID
    revision: int


@dataclass(frozen=True)
class Sockets:
    """Sockets that each watch something.

    Args:
        site: the address of the web server.
        cookie: the cookie of their user.
        watch: the subjects of each socket, with blanks between them.
        file: the file for their hints.
        open: set when all are connected.
        over: set when they must end.
    """

    site: str
    cookie: str
    watch: list[str]
    file: Path
    open: Event
    over: Event

    def run(self) -> None:
        """Listen until `over` is set, then write the file."""
        allow_files(len(self.watch))
        told = asyncio.run(self._listen())
        lines = (json.dumps([s, at, str(id), rev]) for s, at, id, rev in told)
        part = self.file.with_suffix(".part")
        part.write_text("\n".join(lines))
        part.rename(self.file)  # who waits for it finds all of it

    def told(self) -> list[Told]:
        """Return the hints in the file."""
        read = map(json.loads, self.file.read_text().splitlines())
        return [Told(s, at, UUID(id), rev) for s, at, id, rev in read]

    async def _listen(self) -> list[Told]:
        told: list[Told] = []
        turns = asyncio.Semaphore(OPENING)
        opened = [self._open(number, turns) for number in range(len(self.watch))]
        sockets = await asyncio.gather(*opened)
        self.open.set()
        listening = [
            asyncio.create_task(self.listen(number, socket, told))
            for number, socket in enumerate(sockets)
        ]
        await asyncio.to_thread(self.over.wait)
        for one in listening:
            one.cancel()
        return told

    async def _open(self, number: int, turns: asyncio.Semaphore) -> ClientConnection:
        async with turns:
            return await self.connect(number)

    async def connect(self, number: int) -> ClientConnection:
        """Return a new connection of one socket."""
        headers = {"Cookie": self.cookie, "Origin": self.site}
        watched = self.watch[number].split()
        subjects = "&".join(f"watch={subject}" for subject in watched)
        address = f"{self.site.replace('http', 'ws', 1)}/ws/live/?{subjects}"
        return await connect(address, additional_headers=headers)

    async def listen(
        self, number: int, socket: ClientConnection, told: list[Told]
    ) -> None:
        """Note the hints of one socket."""
        async for message in socket:
            at, hint = time.time(), json.loads(message)
            if hint.get("id"):
                told.append(Told(number, at, UUID(hint["id"]), hint["revision"]))


def allow_files(number: int) -> None:
    """Allow this process so many connections, as far as the system does."""
    wanted = 2 * number + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
