"""The calls of a worker in flight, in memory that it shares with its supervisor, which reads without a lock.

When the worker is lost, its supervisor knows which calls it had in flight, and which one blocked all others.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator
from ctypes import Structure, c_bool, c_char, c_double, c_int64, sizeof
from typing import Any, TypeVar

T = TypeVar("T")


def shared_value(form: type[T]) -> T:
    """Make a value of a type of ctypes, all zeros, in memory that this process shares with the children it forks.

    A field of eight bytes is written at once: a reader without a lock sees its old value or its new one.
    """
    made: Any = form
    value: T = made.from_buffer(mmap.mmap(-1, sizeof(made)))
    return value


class ShownCall(Structure):
    """A call in flight, as its worker has shown it.

    Args:
        until: the monotonic time by which it must be over; 0 for an empty place.
        idempotent: whether it may be called again after an unknown outcome.
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
    """The call that runs in the event loop: since when, 0 for none, and its place; the work that is to blame."""

    since: float
    place: int
    blamed: bytes
    _fields_ = (("since", c_double), ("place", c_int64), ("blamed", c_char * 55))


class SharedCalls:
    """The calls of one worker; made before the fork.

    Args:
        places: the most calls that it has in flight.
    """

    def __init__(self, places: int) -> None:
        self._calls, self._turn = shared_value(ShownCall * places), shared_value(_Turn)
        self._free = list(range(places))

    # The worker

    @property
    def room(self) -> int:
        """How many more calls it may have in flight."""
        return len(self._free)

    def begin(self, work: str, until: float, *, idempotent: bool) -> int:
        """Show a call before it begins; return its place. The time is written last: a call without it is not seen."""
        place = self._free.pop()
        call = self._calls[place]
        call.idempotent, call.name = idempotent, work.encode()
        call.until = until
        return place

    def set_end(self, place: int, until: float) -> None:
        """Show another time by which a call must be over."""
        self._calls[place].until = until

    def end(self, place: int) -> None:
        """Show that a call is over and stored."""
        self.set_end(place, 0.0)
        self._free.append(place)

    def begin_turn(self, place: int) -> None:
        """Show that the event loop runs a call from now on."""
        self._turn.place = place
        self._turn.since = time.monotonic()

    def end_turn(self) -> None:
        """Show that it runs none."""
        self._turn.since = 0.0

    def blame(self, work: str) -> None:
        """Show the work that has spoilt the worker, which ends for it. The first one that is shown stays."""
        self._turn.blamed = self._turn.blamed or work.encode()

    def blame_last(self) -> None:
        """Show that the call that ran last has spoilt the event loop."""
        self.blame(self._calls[self._turn.place].work)

    # Its supervisor

    def __iter__(self) -> Iterator[ShownCall]:
        """Return an iterator of the calls in flight."""
        now = type(self._calls).from_buffer_copy(self._calls)
        return (call for call in now if call.until)

    @property
    def blamed(self) -> str:
        """The work that has spoilt the worker; "" for none."""
        return self._turn.blamed.decode()

    @property
    def running_call(self) -> tuple[float, str]:
        """Since when the event loop runs one call, 0 for none, and that call's name."""
        since, place = self._turn.since, self._turn.place
        return since, self._calls[place].work if since else ""
