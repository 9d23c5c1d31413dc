"""Closes connections on which no request begins; `bodies` has the limits of bodies.

uvicorn itself closes connections that are idle after an answer. One without any request, or with half of a request's
head, would stay open, and their number is limited.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SLOWEST = 20.0
"""Seconds within which a request must begin; its connection is closed before twice that time."""


class PunctualProtocol(H11Protocol):
    """uvicorn's HTTP, with a time limit for the beginning of a request."""

    _look_again: asyncio.TimerHandle
    _seen: object = ()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._seen = self.cycle
        self._look_again = self.loop.call_later(SLOWEST, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look_again.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close a connection that waits for a request, and had none since the last look."""
        if self.transport.is_closing():
            return
        waiting = self.conn.their_state is h11.IDLE
        if waiting and self._seen is self.cycle:
            self.transport.close()
            return
        self._seen = self.cycle
        self._look_again = self.loop.call_later(SLOWEST, self._look)
