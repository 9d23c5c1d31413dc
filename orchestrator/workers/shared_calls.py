"""The calls that a worker has in flight, in memory that it shares with its supervisor, which reads without a lock.

When the worker is gone, its supervisor knows by that which calls it was at, and which of them held up all others.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

ENTRY = struct.Struct("d?55s")
"""The moment by which it must be over, 0 for an empty place; whether it is idempotent; its name."""
TURN = struct.Struct("dq")
"""Since when the event loop is at one call, 0 for at none; that call's place."""


class ShownCall(NamedTuple):
    """A call in flight, as its worker has shown it.

    Args:
        until: the monotonic time by which it must be over.
        idempotent: whether it may be called again when it is not known how far it came.
        work: its name.
    """

    until: float
    idempotent: bool
    work: str


class SharedCalls:
    """The calls of one worker; made before it is forked.

    Args:
        places: how many calls it has in flight at most.
    """

    def __init__(self, places: int) -> None:
        self._memory = mmap.mmap(-1, TURN.size + places * ENTRY.size)
        self._free = list(range(places))

    # The worker

    @property
    def room(self) -> int:
        """How many more calls it may have in flight."""
        return len(self._free)

    def begin(self, work: str, until: float, *, idempotent: bool) -> int:
        """Shows a call before it begins, and gives its place. The moment is written last: what is half there is not."""
        place = self._free.pop()
        entry = ENTRY.pack(until, idempotent, work.encode())
        at = TURN.size + place * ENTRY.size
        self._memory[at + 8 : at + ENTRY.size] = entry[8:]
        self._memory[at : at + 8] = entry[:8]
        return place

    def be_over_by(self, place: int, until: float) -> None:
        """Shows that a call must be over by another moment."""
        at = TURN.size + place * ENTRY.size
        self._memory[at : at + 8] = struct.pack("d", until)

    def end(self, place: int) -> None:
        """Shows that a call is over and stored."""
        self.be_over_by(place, 0.0)
        self._free.append(place)

    def turn(self, place: int) -> None:
        """Shows that the event loop is at one call from now on."""
        self._memory[: TURN.size] = TURN.pack(time.monotonic(), place)

    def turned(self) -> None:
        """Shows that it is at none."""
        self._memory[: TURN.size] = bytes(TURN.size)

    # Its supervisor

    def __iter__(self) -> Iterator[ShownCall]:
        """Those in flight."""
        for until, idempotent, work in ENTRY.iter_unpack(self._memory[TURN.size :]):
            if until:
                yield ShownCall(until, idempotent, work.rstrip(b"\0").decode())

    @property
    def any(self) -> bool:
        """Whether any call is in flight."""
        return next(iter(self), None) is not None

    @property
    def turning(self) -> tuple[float, str]:
        """Since when the event loop is at one call, 0 for at none, and that call's name."""
        since, place = TURN.unpack_from(self._memory)
        if not since:
            return 0.0, ""
        at = TURN.size + place * ENTRY.size
        return since, ENTRY.unpack_from(self._memory, at)[2].rstrip(b"\0").decode()
