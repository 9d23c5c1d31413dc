"""Rate limit for failed authentication of API requests, like the one for sign-in.

Each process counts by address. A token cannot be guessed, so the limit only reduces load and log lines. A valid token
works all the time, also from a limited address.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock

from orchestrator.containers import LruCache

LIMIT = 10
"""Failures before an address must wait; as many as for sign-in."""

COOLOFF = 900.0
"""Seconds until the count starts again."""

MOST = 10_000
"""Addresses whose failures are counted."""


class WrongTokens:
    """The failures of each address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._tries = LruCache[str, tuple[float, int]](MOST)
        """The first failure of each address, by the clock of the process, and the number of failures."""

    def add(self, address: str) -> int:
        """Count a failure.

        Returns:
            The seconds for which the address must wait; 0 below the limit.
        """
        with self._lock:
            now = self._clock()
            since, number = self._tries.get(address) or (now, 0)
            if now - since >= COOLOFF:
                since, number = now, 0
            self._tries.keep(address, (since, number + 1))
        return math.ceil(since + COOLOFF - now) if number >= LIMIT else 0

    def forget(self) -> None:
        """Clear all counts."""
        self._tries.clear()


wrong_tokens = WrongTokens()
