"""Limits on the size and the time of request bodies; a larger or slower one is refused before Django reads it.

Django's own limits come too late: behind ASGI it reads a body to its end before it calls a view.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from http import HTTPStatus
from typing import Any

LARGEST = 1_048_576
"""The most bytes of a body."""

SLOWEST = 20.0
"""Seconds within which a body must have arrived."""

WORDS = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too_large",
    HTTPStatus.REQUEST_TIMEOUT: "too_slow",
}
"""Codes for programs, as refusals of webhooks have them."""

AsgiMessage = dict[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApplication = Callable[[Any, Any, Any], Coroutine[Any, Any, None]]


def with_bounded_bodies(application: AsgiApplication) -> AsgiApplication:
    """Return an ASGI application that gets no body larger than `LARGEST` or slower than `SLOWEST`.

    The sender of such a body gets 413 or 408 and a closed connection, at whatever address.
    """

    async def bounded(
        scope: dict[str, Any], receive: AsgiReceive, send: AsgiSend
    ) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        body = _Body(receive, send)
        if _length(scope) > LARGEST:
            await body.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            await application(scope, body.receive, body.send)

    return bounded


class _Body:
    """The body of one request on its way to the application, and the answer on its way back."""

    def __init__(self, receive: AsgiReceive, send: AsgiSend) -> None:
        self._receive, self._send = receive, send
        self._until = asyncio.get_running_loop().time() + SLOWEST
        self._size = 0
        self._all_here = self._answered = self._refused = False

    async def receive(self) -> AsgiMessage:
        """Return the next part of the body; after a refusal, that the client has disconnected."""
        if self._refused:
            return {"type": "http.disconnect"}
        if self._all_here:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            return await self.refuse(HTTPStatus.REQUEST_TIMEOUT)
        self._size += len(message.get("body", b""))
        if self._size > LARGEST:
            return await self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        self._all_here = not message.get("more_body", False)
        return message

    async def send(self, message: AsgiMessage) -> None:
        """Send a part of the application's answer; after a refusal, drop it."""
        if not self._refused:
            self._answered = True
            await self._send(message)

    async def refuse(self, status: HTTPStatus) -> AsgiMessage:
        """Answer in the application's place, and close the connection."""
        self._refused = True
        if not self._answered:
            detail = f"send at most {LARGEST} bytes, within {SLOWEST:g} seconds"
            text = json.dumps({"error": WORDS[status], "detail": detail}).encode()
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(text)).encode()),
                (b"connection", b"close"),
            ]
            start = {"type": "http.response.start", "status": status.value}
            await self._send({**start, "headers": headers})
            await self._send({"type": "http.response.body", "body": text})
        return {"type": "http.disconnect"}


def _length(scope: dict[str, Any]) -> int:
    """Return the length of the body, as its header says; 0 without a header, or with a wrong one."""
    said = (value for name, value in scope["headers"] if name == b"content-length")
    return max((int(value) for value in said if value.isdigit()), default=0)
