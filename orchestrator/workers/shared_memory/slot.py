"""The shared memory in which a child shows its supervisor its present work, and the time by which it must be over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import Structure, c_char, c_double

from orchestrator.workers.shared_memory.calls import shared_value


class _ShownWork(Structure):
    until: float
    name: bytes
    _fields_ = (("until", c_double), ("name", c_char * 64))


class Slot:
    """A little shared memory, made before the fork.

    It holds the monotonic time by which the child's present piece of work must be over, 0 when it is idle, and the
    work's name.
    """

    def __init__(self) -> None:
        self._shown = shared_value(_ShownWork)

    def watch(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> WatchedWork:
        """Show a piece of work that may take `seconds`; the supervisor kills a child that overruns.

        With a `heartbeat`, the work must also report within that many seconds, again and again, by a block of the
        function that the context gives. The seconds begin anew at the end of the block, and do not pass inside it.
        Pieces of work may nest: after the inner one, the slot shows the outer one again.
        """
        return WatchedWork(self, seconds, work, heartbeat)

    @property
    def until(self) -> float:
        """The monotonic time by which the child's present piece of work must be over; 0 when it is idle."""
        return self._shown.until

    @property
    def work(self) -> str:
        """The name of the running work, or of the last one if the child died or could not store its outcome; "" for
        none.
        """
        return self._shown.name.decode()

    def write(self, until: float, work: str) -> None:
        """Show a piece of work that must be over by a time of the monotonic clock."""
        self._shown.until, self._shown.name = until, work.encode()


class _Reports(AbstractContextManager[None]):
    """The blocks in which a piece of work reports: inside one, only the limit of the whole work holds."""

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


class WatchedWork(AbstractContextManager[Callable[[], AbstractContextManager[None]]]):
    """A piece of work that a slot shows. It is no generator, which could not let errors pass that cannot be changed."""

    def __init__(
        self, slot: Slot, seconds: float, work: str, heartbeat: float | None
    ) -> None:
        self._slot, self._work = slot, work
        self._seconds, self._heartbeat = seconds, heartbeat

    def __enter__(self) -> Callable[[], AbstractContextManager[None]]:
        self._around = self._slot.until, self._slot.work
        ends = time.monotonic() + self._seconds
        reports = _Reports(self._slot, self._work, ends, self._heartbeat)
        with reports:
            pass
        return lambda: reports

    def __exit__(self, *failure: object) -> None:
        self._slot.write(*self._around)
