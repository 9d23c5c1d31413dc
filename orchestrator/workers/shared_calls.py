"""The calls that a worker has in flight, in memory that it shares with its supervisor, which reads without a lock.

When the worker is gone, its supervisor knows by that which calls it was at, and which of them held up all others.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator
from ctypes import Structure, c_bool, c_char, c_double, c_int64, sizeof
from typing import Any, TypeVar

T = TypeVar("T")


def shared(form: type[T]) -> T:
    """Makes a value of a type of ctypes, all zeros, in memory that this process shares with the children it forks.

    A field of eight bytes is written at once: a reader needs no lock to see it as it was, or as it is.
    """
    made: Any = form
    value: T = made.from_buffer(mmap.mmap(-1, sizeof(made)))
    return value


class ShownCall(Structure):
    """A call in flight, as its worker has shown it.

    Args:
        until: the monotonic time by which it must be over; 0 for an empty place.
        idempotent: whether it may be called again when it is not known how far it came.
        name: its name.
    """

    until: float
    idempotent: bool
    name: bytes
    _fields_ = (("until", c_double), ("idempotent", c_bool), ("name", c_char * 55))

    @property
    def work(self) -> str:
        """Its name."""
        return self.name.decode()


class _Turn(Structure):
    """Since when the event loop is at one call, 0 for at none; that call's place."""

    since: float
    place: int
    _fields_ = (("since", c_double), ("place", c_int64))


class SharedCalls:
    """The calls of one worker; made before it is forked.

    Args:
        places: how many calls it has in flight at most.
    """

    def __init__(self, places: int) -> None:
        self._calls, self._turn = shared(ShownCall * places), shared(_Turn)
        self._free = list(range(places))

    # The worker

    @property
    def room(self) -> int:
        """How many more calls it may have in flight."""
        return len(self._free)

    def begin(self, work: str, until: float, *, idempotent: bool) -> int:
        """Shows a call before it begins, and gives its place. The moment is written last: what is half there is not."""
        place = self._free.pop()
        call = self._calls[place]
        call.idempotent, call.name = idempotent, work.encode()
        call.until = until
        return place

    def be_over_by(self, place: int, until: float) -> None:
        """Shows that a call must be over by another moment."""
        self._calls[place].until = until

    def end(self, place: int) -> None:
        """Shows that a call is over and stored."""
        self.be_over_by(place, 0.0)
        self._free.append(place)

    def turn(self, place: int) -> None:
        """Shows that the event loop is at one call from now on."""
        self._turn.place = place
        self._turn.since = time.monotonic()

    def turned(self) -> None:
        """Shows that it is at none."""
        self._turn.since = 0.0

    # Its supervisor

    def __iter__(self) -> Iterator[ShownCall]:
        """Those in flight."""
        now = type(self._calls).from_buffer_copy(self._calls)
        return (call for call in now if call.until)

    @property
    def turning(self) -> tuple[float, str]:
        """Since when the event loop is at one call, 0 for at none, and that call's name."""
        since, place = self._turn.since, self._turn.place
        return since, self._calls[place].work if since else ""
