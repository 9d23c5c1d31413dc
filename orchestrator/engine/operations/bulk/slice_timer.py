"""The share of a worker's time for slices of bulk operations: all while no other work is due, else a small part."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SLICE_SECONDS = 0.1
"""The time in which a slice begins items."""

FOLLOWS = 0.005
"""Seconds of work that an item causes for the worker: the worker also carries out what the item tries again."""

REST = 7
"""After a slice, other work that is due gets this many times the seconds of the slice and of the work it caused."""


@dataclass
class SliceCount:
    """A slice.

    Args:
        begun: the number of items that it has begun.
    """

    begun: int = 0


class SliceTimer:
    """The earliest time of the next slice in one worker."""

    def __init__(self) -> None:
        self._until = 0.0

    def is_due(self, *, others: bool) -> bool:
        """Return whether a slice may begin; `others` says whether the worker has just found other work."""
        return not others or time.monotonic() >= self._until

    @contextmanager
    def measure(self) -> Iterator[SliceCount]:
        """Measure a slice; the caller sets `begun` of the yielded value."""
        begun, measured = time.monotonic(), SliceCount()
        try:
            yield measured
        finally:
            now = time.monotonic()
            self._until = now + (now - begun + measured.begun * FOLLOWS) * REST


slice_timer = SliceTimer()
"""The timer of this worker; a fork continues with a copy."""
