"""The requests of open pages take turns, so that hundreds of them hold up neither a person's request nor a hint.

What an open page fetches is computed in Python, which computes one thing at a time: more threads would not be sooner
done, and would keep the event loop, which tells the pages of changes, waiting for the interpreter. Whoever waits here
costs nothing, and finds that others who asked meanwhile have been answered with the same (`sharing`).

When there are more pages than can be answered, some are turned away and ask again a second later. So that these are not
the same ones for ever, a page says how often it has had no answer, and who had none most often is next.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from monitoring.sharing import ARRIVED

AT_ONCE = 2
"""Requests of open pages that are computed at the same time: while one waits for the database the other goes on.

Each more of them keeps the event loop waiting for the interpreter, when it has a change to tell."""

FIRST = 0.01
"""Seconds that a request of an open page is taken to need before any has been seen."""

LONGEST = 10.0
"""Seconds that no page is asked to wait longer than: each looks again every ten by itself."""

PATIENCE = 6.0
"""Seconds that a request waits for its turn: a page gives it up after ten, and must have its answer before."""

UNANSWERED = b"procession-unanswered"
"""The header in which a page says how many of its requests in a row had no answer (`static/monitoring/page.js`)."""

MOST_DIGITS = 5

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


class Turns:
    """So many at the same time; of those who wait who was unanswered most often is next, of equals who came first."""

    def __init__(self) -> None:
        self._free = AT_ONCE
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def begin(self, unanswered: int) -> bool:
        """Waits for a turn; whether there was one within `PATIENCE`. One that has begun has to end."""
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
        """Gives the turn to the next one."""
        # The future of who has given up or gone is done.
        self._waiting = [one for one in self._waiting if not one[1].done()]
        if self._waiting:
            max(self._waiting, key=itemgetter(0))[1].set_result(None)
        else:
            self._free += 1


class InTurn:
    """An ASGI application of which the requests of open pages wait for each other, and no others."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = (
            WeakKeyDictionary()
        )

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not is_of_an_open_page(scope):
            await self._application(scope, receive, send)
            return
        arrived = time.monotonic()
        turns = self._turns.setdefault(asyncio.get_running_loop(), Turns())
        if not await turns.begin(unanswered(scope)):
            await _answer_too_late(send)
            return
        try:
            begun = time.monotonic()
            await self._application({**scope, ARRIVED: arrived}, receive, send)
            need.add(time.monotonic() - begun)
        finally:
            turns.end()


def is_of_an_open_page(scope: dict[str, Any]) -> bool:
    """Whether a request looks like one that an open page makes by itself."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    asked = (
        scope["query_string"].startswith(b"since=")
        or b"&since=" in scope["query_string"]
    )
    return asked and any(name == b"hx-request" for name, _ in scope["headers"])


def unanswered(scope: dict[str, Any]) -> int:
    """How many requests before this one the page says to have had no answer to."""
    said = next((value for name, value in scope["headers"] if name == UNANSWERED), b"")
    return int(said) if said.isdigit() and len(said) < MOST_DIGITS else 0


async def _answer_too_late(send: Any) -> None:
    """Turns a page away, with a header of its own: what else answers 503 has reasons that a page cannot mend."""
    status = HTTPStatus.SERVICE_UNAVAILABLE
    headers = [
        (b"content-length", b"0"),
        (b"cache-control", b"no-store"),
        (b"procession-late", b"1"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
