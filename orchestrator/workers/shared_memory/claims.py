"""Claims and unstored results of a busy worker, in memory that it shares with its supervisor.

The worker writes and its supervisor reads, without a lock: if one of them is stopped or killed, the other goes on. Time
makes that sound. A worker shows its next act before it looks at the clock; once its time is over, it begins nothing and
holds nothing more. Its supervisor reads only after that.
"""

from __future__ import annotations

import json
import mmap
import time
from collections.abc import Callable, Sequence
from ctypes import Structure, c_double, c_uint32, sizeof
from typing import NamedTuple

from orchestrator.engine.work.worker_slice import (
    BEGIN_SECONDS,
    TAKE_SECONDS,
    Claim,
    HeldWork,
    UnstoredResult,
    lateness,
)

CLAIMS_ROOM = 1 << 13
"""Bytes of the page of claims: room for 64 events and their order."""

RESULTS_ROOM = 1 << 16
"""Bytes of the page of results; a result without room is stored at once."""

CLAIMS_SECONDS = BEGIN_SECONDS + 0.01
"""The time at which the supervisor reads: late enough to see what the worker wrote in its own time."""


FREE = 1 << 16
"""The page of claims has two numbers in one, which is written at once: this is more than a worker can claim."""

CALLING = 1
"""The number on the page of results while the worker runs a function."""


class IdleClaims(NamedTuple):
    """Claims that their worker will not begin: since when it holds them, and their names."""

    since: float
    works: list[str]


class UnstoredResults(NamedTuple):
    """Results that are not stored, and since when the worker holds the first of them."""

    since: float
    results: list[UnstoredResult]


class SharedClaims(HeldWork):
    """The claims and results of one worker; made before the fork.

    Args:
        wake: wakes the process that takes over, if it would sleep for longer.
    """

    def __init__(self, wake: Callable[[float], None] = lambda due: None) -> None:
        self._wake = wake
        self.claims = SharedPage.of(CLAIMS_ROOM)
        self.results = SharedPage.of(RESULTS_ROOM)

    # The worker

    def show_claimed(self, claims: Sequence[Claim], asked: float) -> None:
        if len(claims) > 1 and self.claims.write(json.dumps(claims), asked, 1):
            self._wake(self.claims.time_after(CLAIMS_SECONDS))

    def show_begun(self, number: int, free: int = 0) -> None:
        self.claims.number = free * FREE + number + 1

    def release(self) -> None:
        self.claims.clear()

    def show_result(self, result: UnstoredResult) -> bool:
        line = json.dumps(result) + "\n"
        if self.results.since:
            self.results.number = 0
            return self.results.append(line)
        fits = self.results.write(line, time.monotonic())
        if fits:
            self._wake(self.results.time_after(TAKE_SECONDS))
        return fits

    def show_calling(self) -> None:
        self.results.number = CALLING

    def show_stored(self) -> None:
        self.results.clear()

    # Its supervisor

    @property
    def is_calling(self) -> bool:
        """Whether the worker runs a function while it holds results, and cannot store them."""
        return self.results.number == CALLING

    def unbegun(self) -> IdleClaims:
        """Return the claims that are not begun; without those that must not overtake the running work."""
        since, numbers, text = self.claims.read()
        free, number = divmod(numbers, FREE)
        claims = [Claim(*claim) for claim in json.loads(text or "[]")]
        ahead = {claim.order for claim in claims[free:number]} - {""}
        others = (*claims[:free], *claims[number:])
        return IdleClaims(since, [one.work for one in others if one.order not in ahead])

    def unstored(self) -> UnstoredResults:
        """Return the results that the worker holds while it runs a function."""
        since, number, text = self.results.read()
        return UnstoredResults(since, parse_results(text) if number == CALLING else [])


def parse_results(text: str) -> list[UnstoredResult]:
    """Return the results that a worker has shown."""
    return [UnstoredResult(*json.loads(line)) for line in text.splitlines()]


class PageContent(NamedTuple):
    """The content of a page at one moment."""

    since: float
    number: int
    text: str


class SharedPage(Structure):
    """Shared memory with a text, a number, and the monotonic time since when they hold, 0 for not at all.

    It begins with these fields; the text follows them. The lateness is that of the worker as it wrote the page: both
    sides multiply the same bounds by it.
    """

    since: float
    late: float
    number: int
    length: int
    _fields_ = (
        ("since", c_double),
        ("late", c_double),
        ("number", c_uint32),
        ("length", c_uint32),
    )
    _memory: mmap.mmap

    @classmethod
    def of(cls, room: int) -> SharedPage:
        """Make an empty page of `room` bytes."""
        memory = mmap.mmap(-1, room)
        page = cls.from_buffer(memory)
        page._memory = memory
        return page

    def write(self, text: str, since: float, number: int = 0) -> bool:
        """Write a page anew, the time last; return whether it has room for the text."""
        self.clear()
        self.number, self.length, self.late = number, 0, lateness.factor
        if not self.append(text):
            return False
        self.since = since
        return True

    def append(self, text: str) -> bool:
        """Append to a page; return whether it has room for the text."""
        data, begin = text.encode(), sizeof(self) + self.length
        ends = begin + len(data)
        if ends > len(self._memory):
            return False
        self._memory[begin:ends] = data
        self.length += len(data)
        return True

    def clear(self) -> None:
        self.since = 0.0

    def time_after(self, bound: float) -> float:
        """Return the monotonic time at which a bound, in seconds, of what the page has is over."""
        return self.since + bound * self.late

    def read(self) -> PageContent:
        """Return the content; an empty one while the worker writes it anew."""
        since = self.since
        number = self.number
        data = self._memory[sizeof(self) : sizeof(self) + self.length]
        if not since or self.since != since:
            return PageContent(0.0, 0, "")
        return PageContent(since, number, data.decode())
