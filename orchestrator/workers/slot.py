"""What a child tells its supervisor without a database: what it is at, and until when that may take."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FORM = struct.Struct("d64s")


class Slot:
    """A little shared memory, made before the fork.

    It holds the monotonic time by which the child's present piece of work must be over, 0 when it is idle, and the
    work's name.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, FORM.size)

    @contextmanager
    def watch(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> Iterator[Callable[[], None]]:
        """Marks a piece of work that may take so many seconds; the supervisor kills a child that overruns.

        With a heartbeat it must also call what it is given within so many seconds, again and again. Within one piece of
        work another may be marked; when that is over, the first is what the child is at again.
        """
        ends, around = time.monotonic() + seconds, self._read()

        def alive() -> None:
            if heartbeat is not None:
                self._write(min(ends, time.monotonic() + heartbeat), work)

        self._write(ends, work)
        alive()
        try:
            yield alive
        finally:
            self._write(*around)

    @property
    def overrun(self) -> bool:
        """Whether the child is past the time its work may take."""
        return bool(0 < self._read()[0] < time.monotonic())

    @property
    def work(self) -> str:
        """The name of the work that the child is at, or was at when it died; "" for none."""
        return self._read()[1]

    def forgive(self) -> None:
        """Makes an overrun count no more; the work stays named."""
        self._write(0.0, self.work)

    def _read(self) -> tuple[float, str]:
        until, work = FORM.unpack_from(self._memory)
        return until, work.rstrip(b"\0").decode()

    def _write(self, until: float, work: str) -> None:
        FORM.pack_into(self._memory, 0, until, work.encode())
