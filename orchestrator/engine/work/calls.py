"""Claimed work whose function waits outside: its worker calls many such functions at once, and stores their results.

A function runs in an event loop or in a thread of its own. The engine's thread, the only one with the engine's
connection, does everything else: it prepares the call, stores the result, and asks the database for the function.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from orchestrator.engine.work.leases import work_name
from orchestrator.models import Work

Ask = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function in the engine's thread, and awaits its result."""


class Call(ABC):
    """One attempt of a piece of work that waits outside.

    Args:
        work: the claimed row.
        timeout: seconds that it may take.
        heartbeat: seconds within which it must report, again and again; None for a function that need not report.
        idempotent: whether it may be called again after an attempt whose outcome is unknown.
        threads: the most calls of its kind at once, each in a thread; None for an asynchronous function.
        kind: the same value for all calls of one kind.
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
        self.work, self.name, self.kind = work, work_name(work), kind
        self.timeout, self.heartbeat = timeout, heartbeat
        self.idempotent, self.threads = idempotent, threads
        self.most = threads
        """The most calls of its kind in flight at once; None for any number."""
        self.ask: Ask = ask_too_early
        self.ends = float("inf")
        """The monotonic time at which its timeout is over."""
        self._silent_since: float | None = None

    @abstractmethod
    def call(self) -> Any:
        """Call its function in this thread."""

    @abstractmethod
    async def wait(self) -> Any:
        """Await its function in this thread's event loop."""

    @abstractmethod
    def store_result(self, result: Any) -> Call | None:
        """Store its function's result. Return the call that this worker goes on with.

        Raises:
            DatabaseError: the database refused, and nothing is stored; try it again.
        """

    @property
    def together(self) -> Hashable | None:
        """The same value for calls whose results may share a commit; None for a call that shares none."""
        return None

    def store_results(self, given: Sequence[tuple[Call, Any]]) -> list[Call]:
        """Store the results of several calls, this one among them. Return the calls that follow.

        Raises:
            DatabaseError: the database refused; try it again.
        """
        following = [call.store_result(result) for call, result in given]
        return [call for call in following if call is not None]

    @abstractmethod
    def store_error(self, error: Exception) -> Call | None:
        """Store the consequence of its failure. Return the call that this worker goes on with."""

    def begin(self) -> None:
        """Start its timeout and its heartbeat."""
        self._silent_since = time.monotonic()
        self.ends = self._silent_since + self.timeout

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report a heartbeat; the engine's own work inside this context does not count against it."""
        self._silent_since = None
        try:
            yield
        finally:
            self._silent_since = time.monotonic()

    async def call_engine(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the engine's thread."""
        with self.reporting():
            return await self.ask(lambda: function(*arguments))

    @property
    def due(self) -> float:
        """The monotonic time at which it is late, unless it reports before."""
        since = self._silent_since
        if self.heartbeat is None or since is None:
            return self.ends
        return min(self.ends, since + self.heartbeat)


async def ask_too_early(function: Callable[[], Any]) -> Any:
    """Refuse: the call has not begun, so no thread answers yet."""
    raise RuntimeError("asked before the call began")
