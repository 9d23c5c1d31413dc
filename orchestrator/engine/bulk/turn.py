"""When a worker takes a slice of a bulk operation: at once while nothing else is due, else a small part of its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SLICE_SECONDS = 0.1
"""How long a slice begins items."""

REST = 7
"""How many times as long as its last slice a worker is at other work, if there is any, before it takes another."""


class Turn:
    """Whose turn it is in one worker."""

    def __init__(self) -> None:
        self._until = 0.0

    def is_now(self, *, others: bool) -> bool:
        """Whether a slice may begin; `others` says whether other work was just found."""
        return not others or time.monotonic() >= self._until

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wraps a slice."""
        begun = time.monotonic()
        try:
            yield
        finally:
            now = time.monotonic()
            self._until = now + (now - begun) * REST


turn = Turn()
"""That of this worker; a fork goes on with a copy."""
