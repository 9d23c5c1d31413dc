"""Who brings no token, or a wrong one, too often, has to wait, as whoever fails too often to sign in.

It is counted by address, in this process: a token cannot be guessed, so this only keeps the noise down. Whoever brings
a good one is let in meanwhile, also from the same address.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock

from orchestrator.collecting import Latest

LIMIT = 10
"""Wrong ones that are answered as such; as many as for signing in."""

COOLOFF = 900.0
"""Seconds until they are counted anew."""

MOST = 10_000
"""Addresses that are remembered."""


class WrongTokens:
    """How often which address has brought none that is good."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._tries = Latest[str, tuple[float, int]](MOST)
        """When each address began to try, by the clock of the process, and how often it has."""

    def add(self, address: str) -> int:
        """Counts one more.

        Returns:
            The seconds for which the address has to wait; 0 where it need not.
        """
        with self._lock:
            now = self._clock()
            since, number = self._tries.get(address) or (now, 0)
            if now - since >= COOLOFF:
                since, number = now, 0
            self._tries.keep(address, (since, number + 1))
        return math.ceil(since + COOLOFF - now) if number >= LIMIT else 0

    def forget(self) -> None:
        """Begins anew."""
        self._tries.clear()


wrong_tokens = WrongTokens()
