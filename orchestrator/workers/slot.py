"""What a child tells its supervisor without a database: what it is at, and until when that may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from ctypes import Structure, c_char, c_double

from orchestrator.workers.shared_calls import shared


class _Work(Structure):
    until: float
    name: bytes
    _fields_ = (("until", c_double), ("name", c_char * 64))


class Slot:
    """A little shared memory, made before the fork.

    It holds the monotonic time by which the child's present piece of work must be over, 0 when it is idle, and the
    work's name.
    """

    def __init__(self) -> None:
        self._shown = shared(_Work)

    @contextmanager
    def watch(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> Iterator[Callable[[], AbstractContextManager[None]]]:
        """Marks a piece of work that may take so many seconds; the supervisor kills a child that overruns.

        With a heartbeat it must also report within so many seconds, again and again, by a block under what it is given:
        its seconds begin anew at the end of the block, and none of them pass inside it. Within one piece of work
        another may be marked; when that is over, the first is what the child is at again.
        """
        around = self._shown.until, self._shown.name
        reports = _Reports(self, work, time.monotonic() + seconds, heartbeat)
        with reports:
            pass
        try:
            yield lambda: reports
        finally:
            self._shown.until, self._shown.name = around

    @property
    def until(self) -> float:
        """The monotonic time by which the child's present piece of work must be over; 0 when it is idle."""
        return self._shown.until

    @property
    def work(self) -> str:
        """The name of the work that the child is at, or was at when it died, or could store nothing of; "" for none."""
        return self._shown.name.decode()

    def write(self, until: float, work: str) -> None:
        """Marks a piece of work that must be over by a moment of the monotonic clock."""
        self._shown.until, self._shown.name = until, work.encode()


class _Reports(AbstractContextManager[None]):
    """The blocks in which a piece of work reports, one after the other: within one, it has all the time there is."""

    def __init__(
        self, slot: Slot, work: str, ends: float, heartbeat: float | None
    ) -> None:
        self._slot, self._work, self._ends = slot, work, ends
        self._heartbeat = heartbeat

    def __enter__(self) -> None:
        self._slot.write(self._ends, self._work)

    def __exit__(self, *failure: object) -> None:
        if self._heartbeat is not None:
            until = min(self._ends, time.monotonic() + self._heartbeat)
            self._slot.write(until, self._work)
