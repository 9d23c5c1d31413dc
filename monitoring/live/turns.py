"""A limit on simultaneous requests of open pages, so that hundreds of them delay neither a person's request nor a hint.

Python computes one answer at a time. More threads would not finish sooner, and would keep the event loop, which sends
the hints, waiting for the interpreter. A waiting request costs nothing, and may get the answer that another request
had computed meanwhile (`sharing`).

When there are more pages than the server can answer, it turns some away, and they ask again a second later. A page says
how many of its requests had no answer; the page with the most is next.
"""

import asyncio
import time
from http import HTTPStatus
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from monitoring.live.sharing import ARRIVED
from orchestrator.serving.bodies import AsgiApplication

AT_ONCE = 2
"""Requests of open pages that are computed at the same time: while one waits for the database the other goes on.

Each further one would keep the event loop waiting for the interpreter when it has a hint to send."""

FIRST = 0.01
"""Seconds that a request is assumed to need before one was measured."""

LONGEST = 10.0
"""The longest pace in seconds; each page fetches every ten seconds by itself."""

PATIENCE = 6.0
"""Seconds that a request waits for its turn; a page gives its request up after ten."""

UNANSWERED = b"procession-unanswered"
"""The header with the number of a page's last requests that had no answer (`static/monitoring/page.js`)."""

MOST_DIGITS = 5


class Need:
    """The mean time that a request of an open page takes, from which the pages' pace follows."""

    def __init__(self) -> None:
        self._seconds = FIRST

    def add(self, seconds: float) -> None:
        self._seconds += (seconds - self._seconds) / 20

    def pace(self, pages: int) -> float:
        """Return the seconds between two fetches of each of `pages` pages, so that half the turns stay free."""
        return round(min(LONGEST, pages * self._seconds * 2 / AT_ONCE), 3)


need = Need()


class Turns:
    """At most `AT_ONCE` turns at a time. The request with the most unanswered ones is next; of equals the first."""

    def __init__(self) -> None:
        self._free = AT_ONCE
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def begin(self, unanswered: int) -> bool:
        """Wait for a turn; return whether one came within `PATIENCE`. The caller must end a turn that began."""
        if self._free:
            self._free -= 1
            return True
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((unanswered, turn))
        try:
            async with asyncio.timeout(PATIENCE):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.end()
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def end(self) -> None:
        """Give the turn to the next request."""
        # The future of a request that gave up is done.
        self._waiting = [one for one in self._waiting if not one[1].done()]
        if self._waiting:
            max(self._waiting, key=itemgetter(0))[1].set_result(None)
        else:
            self._free += 1


class TurnLimiter:
    """An ASGI application in which only the requests of open pages wait for each other."""

    def __init__(self, application: AsgiApplication) -> None:
        self._application = application
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = (
            WeakKeyDictionary()
        )

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not is_live_request(scope):
            await self._application(scope, receive, send)
            return
        arrived = time.monotonic()
        turns = self._turns.setdefault(asyncio.get_running_loop(), Turns())
        if not await turns.begin(unanswered_count(scope)):
            await _answer_too_late(send)
            return
        try:
            begun = time.monotonic()
            await self._application({**scope, ARRIVED: arrived}, receive, send)
            need.add(time.monotonic() - begun)
        finally:
            turns.end()


def is_live_request(scope: dict[str, Any]) -> bool:
    """Whether a request looks like a fetch of an open page."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    asked = b"&since=" in b"&" + scope["query_string"]
    return asked and any(name == b"hx-request" for name, _ in scope["headers"])


def unanswered_count(scope: dict[str, Any]) -> int:
    """Return the number of requests without answer that the page reports."""
    said = next((value for name, value in scope["headers"] if name == UNANSWERED), b"")
    return int(said) if said.isdigit() and len(said) < MOST_DIGITS else 0


async def _answer_too_late(send: Any) -> None:
    """Turn a page away, with a header that tells this 503 from others, which the page cannot wait for."""
    status = HTTPStatus.SERVICE_UNAVAILABLE
    headers = [
        (b"content-length", b"0"),
        (b"cache-control", b"no-store"),
        (b"procession-late", b"1"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
