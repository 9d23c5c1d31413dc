"""The requests of open pages take turns, so that hundreds of them hold up neither a person's request nor a hint.

What an open page fetches is computed in Python, which computes one thing at a time: more threads would not be sooner
done, and would keep the event loop, which tells the pages of changes, waiting for the interpreter. Whoever waits here
costs nothing, and finds that others who asked meanwhile have been answered with the same (`views.sharing`).
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from monitoring.views.sharing import ARRIVED

AT_ONCE = 2
"""Requests of open pages that are computed at the same time: while one waits for the database the other goes on.

Each more of them keeps the event loop waiting for the interpreter, when it has a change to tell."""

FIRST = 0.01
"""Seconds that a request of an open page is taken to need before any has been seen."""

LONGEST = 10.0
"""Seconds that no page is asked to wait longer than: each looks again every ten by itself."""

PATIENCE = 6.0
"""Seconds that a request waits for its turn: a page gives it up after ten, and must have its answer before."""

Application = Callable[[Any, Any, Any], Coroutine[Any, Any, None]]


class Need:
    """What a request of an open page has needed lately, from which the pages' pace follows."""

    def __init__(self) -> None:
        self._seconds = FIRST

    def add(self, seconds: float) -> None:
        self._seconds += (seconds - self._seconds) / 20

    def pace(self, pages: int) -> float:
        """Seconds that each of so many pages should leave between two fetches: then half the turns stay free."""
        return round(min(LONGEST, pages * self._seconds * 2 / AT_ONCE), 3)


need = Need()


class InTurn:
    """An ASGI application of which the requests of open pages wait for each other, and no others."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not is_of_an_open_page(scope):
            await self._application(scope, receive, send)
            return
        arrived = time.monotonic()
        turns = self._turns.setdefault(
            asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)
        )
        async with turns:
            if time.monotonic() - arrived > PATIENCE:
                await _answer_too_late(send)
            else:
                begun = time.monotonic()
                await self._application({**scope, ARRIVED: arrived}, receive, send)
                need.add(time.monotonic() - begun)


def is_of_an_open_page(scope: dict[str, Any]) -> bool:
    """Whether a request looks like one that an open page makes by itself."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    asked = (
        scope["query_string"].startswith(b"since=")
        or b"&since=" in scope["query_string"]
    )
    return asked and any(name == b"hx-request" for name, _ in scope["headers"])


async def _answer_too_late(send: Any) -> None:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    headers = [(b"content-length", b"0"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
