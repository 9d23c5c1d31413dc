"""Claimed work whose function waits outside: its worker calls it beside many others, and stores what comes of it.

The function is called in an event loop or in a thread of its own. Everything else is done by the one thread that has
the engine's connection: it prepares the call, stores the result, and asks the database for the running function.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import (
    Awaitable,
    Callable,
    Hashable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from typing import Any

from orchestrator.engine.claims.leases import name_of
from orchestrator.models import Work

Ask = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Has a function called by the thread that has the engine's connection, and is awaited for what it gives."""


class Call(ABC):
    """One attempt of a piece of work that waits outside.

    Args:
        work: the claimed row.
        timeout: seconds that it may take.
        heartbeat: seconds within which it must report, again and again; None when it need not.
        idempotent: whether it may be called again when it is not known how far it came.
        threads: how many of its kind are called at once, each in a thread; None for an asynchronous function.
        kind: what it has in common with those.
    """

    def __init__(
        self,
        work: Work,
        *,
        timeout: float,
        heartbeat: float | None,
        idempotent: bool,
        threads: int | None,
        kind: Hashable,
    ) -> None:
        self.work, self.name, self.kind = work, name_of(work), kind
        self.timeout, self.heartbeat = timeout, heartbeat
        self.idempotent, self.threads = idempotent, threads
        self.most = threads
        """How many of its kind may be in flight at once; None for any number."""
        self.ask: Ask = nobody
        self.ends = float("inf")
        """The monotonic time at which its time is over."""
        self._silent_since: float | None = None

    @abstractmethod
    def call(self) -> Any:
        """Calls its function in this thread."""

    @abstractmethod
    async def wait(self) -> Any:
        """Awaits its function in this thread's event loop."""

    @abstractmethod
    def returned(self, result: Any) -> Call | None:
        """Stores what its function has given, and gives the call that this worker goes on with.

        Raises:
            DatabaseError: the database refused, and nothing is stored; it may be tried again.
        """

    @property
    def together(self) -> Hashable | None:
        """What it has in common with calls whose results are stored in one commit with its own; None for no others."""
        return None

    def all_returned(self, given: Sequence[tuple[Call, Any]]) -> list[Call]:
        """Stores what several that go together have given, this one among them, and gives the calls that follow.

        Raises:
            DatabaseError: the database refused; it may be tried again.
        """
        following = [call.returned(result) for call, result in given]
        return [call for call in following if call is not None]

    @abstractmethod
    def failed(self, error: Exception) -> Call | None:
        """Stores what its failure leads to, and gives the call that this worker goes on with."""

    def begin(self) -> None:
        """Notes that its time begins now."""
        self._silent_since = time.monotonic()
        self.ends = self._silent_since + self.timeout

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Says that it is getting on; what the engine does meanwhile takes none of its heartbeat."""
        self._silent_since = None
        try:
            yield
        finally:
            self._silent_since = time.monotonic()

    async def elsewhere(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Has a function called by the thread that has the engine's connection."""
        with self.reporting():
            return await self.ask(lambda: function(*arguments))

    @property
    def due(self) -> float:
        """The monotonic time at which its time is over, unless it reports."""
        since = self._silent_since
        if self.heartbeat is None or since is None:
            return self.ends
        return min(self.ends, since + self.heartbeat)


async def nobody(function: Callable[[], Any]) -> Any:
    """Nobody has begun the call."""
    raise RuntimeError("asked before the call began")
