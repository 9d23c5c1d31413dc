"""Finds Firefox, and runs it for Playwright: `python -m tests.services.firefox FIREFOX ARGUMENT...`.

Playwright gives each profile its colours by a command that the Firefox for enterprises does not know yet. So Playwright
speaks to a proxy, which answers this command itself.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.services.stage import ROOT

NAMES = ("firefox-esr", "firefox")
UNKNOWN = "emulation.setMediaFeaturesOverride"
LISTENING = re.compile(rb"ws://127\.0\.0\.1:\d+")
"""Firefox says on its error output where it listens."""


def firefox() -> str | None:
    """Return the path of an installed Firefox; None without any."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def behind_proxy(path: str, folder: Path) -> Path:
    """Write a program into a folder that runs the Firefox at a path behind the proxy; return its path."""
    program = folder / "firefox"
    words = f"exec '{sys.executable}' -m tests.services.firefox '{path}' \"$@\""
    program.write_text(f"#!/bin/sh\ncd '{ROOT}'\n{words}\n")
    program.chmod(0o755)
    return program


async def run(command: list[str]) -> int:
    """Run Firefox, and the proxy as soon as Firefox listens; return the exit code of Firefox."""
    child = await asyncio.create_subprocess_exec(*command, stderr=PIPE)
    assert child.stderr is not None
    while line := await child.stderr.readline():
        if found := LISTENING.search(line):
            real = found[0].decode()

            async def forward(page: ServerConnection, real: str = real) -> None:
                await _forward(page, real)

            server = await serve(forward, "127.0.0.1", 0, max_size=None)
            port = server.sockets[0].getsockname()[1]
            line = LISTENING.sub(f"ws://127.0.0.1:{port}".encode(), line)
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
    return await child.wait()


async def _forward(near: ServerConnection, real: str) -> None:
    """Pass messages between Playwright and Firefox."""
    assert near.request is not None
    async with connect(real + near.request.path, max_size=None) as far:

        async def answer() -> None:
            async for text in far:
                await near.send(text)
            await near.close()

        answers = asyncio.create_task(answer())
        with suppress(ConnectionClosed):
            async for text in near:
                if UNKNOWN in str(text):
                    done = {"type": "success", "id": json.loads(text)["id"]}
                    await near.send(json.dumps({**done, "result": {}}))
                else:
                    await far.send(text)
        answers.cancel()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(sys.argv[1:])))
