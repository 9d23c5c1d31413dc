"""When a worker takes a slice of a bulk operation: at once while nothing else is due, else a small part of its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SLICE_SECONDS = 0.1
"""How long a slice begins items."""

FOLLOWS = 0.005
"""Seconds of a worker that follow from an item that was begun: what is tried again has to be carried out, too."""

REST = 7
"""How many times as long as its last slice, with what follows from it, a worker is at other work, if there is any."""


@dataclass
class Taken:
    """A slice.

    Args:
        begun: how many items it has begun.
    """

    begun: int = 0


class Turn:
    """Whose turn it is in one worker."""

    def __init__(self) -> None:
        self._until = 0.0

    def is_now(self, *, others: bool) -> bool:
        """Whether a slice may begin; `others` says whether other work was just found."""
        return not others or time.monotonic() >= self._until

    @contextmanager
    def taken(self) -> Iterator[Taken]:
        """Wraps a slice."""
        begun, taken = time.monotonic(), Taken()
        try:
            yield taken
        finally:
            now = time.monotonic()
            self._until = now + (now - begun + taken.begun * FOLLOWS) * REST


turn = Turn()
"""That of this worker; a fork goes on with a copy."""
