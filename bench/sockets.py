"""Socket clients as open pages are, in a process of their own: they note when they are told of what."""

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
"""How many connect at once."""


class Told(NamedTuple):
    """What a socket was told, and when."""

    socket: int
    at: float
    process: UUID
    revision: int


@dataclass(frozen=True)
class Sockets:
    """Sockets that each watch something.

    Args:
        site: the address of the web server.
        cookie: who they are.
        watch: the subjects of each of them, with blanks between them.
        file: where is written what they were told.
        open: set when all are connected.
        over: to be set when they shall end.
    """

    site: str
    cookie: str
    watch: list[str]
    file: Path
    open: Event
    over: Event

    def run(self) -> None:
        """Listens until it is told to end, then writes the file."""
        allow_files(len(self.watch))
        told = asyncio.run(self._listen())
        lines = (json.dumps([s, at, str(id), rev]) for s, at, id, rev in told)
        part = self.file.with_suffix(".part")
        part.write_text("\n".join(lines))
        part.rename(self.file)  # who waits for it finds all of it

    def told(self) -> list[Told]:
        """What was written."""
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
        """A new connection for one socket."""
        headers = {"Cookie": self.cookie, "Origin": self.site}
        watched = self.watch[number].split()
        subjects = "&".join(f"watch={subject}" for subject in watched)
        address = f"{self.site.replace('http', 'ws', 1)}/ws/live/?{subjects}"
        return await connect(address, additional_headers=headers)

    async def listen(
        self, number: int, socket: ClientConnection, told: list[Told]
    ) -> None:
        """Notes what one socket is told."""
        async for message in socket:
            at, hint = time.time(), json.loads(message)
            if hint.get("id"):
                told.append(Told(number, at, UUID(hint["id"]), hint["revision"]))


def allow_files(number: int) -> None:
    """Lets this process have so many connections, as far as the system does."""
    wanted = 2 * number + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
