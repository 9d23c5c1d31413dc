"""Who brings no token, or a wrong one, too often, has to wait, as whoever fails too often to sign in.

It is counted by address, in this process: a token cannot be guessed, so this only keeps the noise down. Whoever brings
a good one is let in meanwhile, also from the same address.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

LIMIT = 10
"""Wrong ones that are answered as such; as many as for signing in."""

COOLOFF = 900.0
"""Seconds until they are counted anew."""

MOST = 10_000
"""Addresses that are remembered."""


@dataclass
class Tries:
    """What an address has tried.

    Args:
        since: when it began, by the clock of the process.
        number: how often.
    """

    since: float
    number: int = 0


class WrongTokens:
    """How often which address has brought none that is good."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._tries: OrderedDict[str, Tries] = OrderedDict()

    def add(self, address: str) -> int:
        """Counts one more.

        Returns:
            The seconds for which the address has to wait; 0 where it need not.
        """
        with self._lock:
            now = self._clock()
            tries = self._tries.get(address)
            if tries is None or now - tries.since >= COOLOFF:
                self._tries.pop(address, None)
                tries = self._tries[address] = Tries(now)
                if len(self._tries) > MOST:
                    self._tries.popitem(last=False)
            tries.number += 1
            if tries.number <= LIMIT:
                return 0
            return math.ceil(tries.since + COOLOFF - now)

    def forget(self) -> None:
        """Begins anew."""
        with self._lock:
            self._tries.clear()


wrong_tokens = WrongTokens()
