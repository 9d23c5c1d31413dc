"""Connections on which no request begins are closed, as bodies that do not come are refused (`bodies`).

uvicorn by itself closes those that are quiet after an answer. One that never asks, or sends half of a request's head,
would stay for ever, and the system gives out only so many.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SLOWEST = 20.0
"""Seconds within which a request has to begin; what has not by then is closed before twice that."""


class PunctualProtocol(H11Protocol):
    """uvicorn's HTTP, which looks at each connection now and then."""

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
        """Closes a connection that has waited for a request since the last look, and had none in between."""
        if self.transport.is_closing():
            return
        waiting = self.conn.their_state is h11.IDLE
        if waiting and self._seen is self.cycle:
            self.transport.close()
            return
        self._seen = self.cycle
        self._look_again = self.loop.call_later(SLOWEST, self._look)
