"""What a worker holds beside the work that it is at, in memory that it shares with its supervisor.

The worker writes and its supervisor reads, without a lock: whichever of them is frozen or killed, the other goes on.
What makes it sound is time. A worker shows what it is about to do before it looks at the clock, and begins nothing, and
holds nothing more, once its time is over; its supervisor looks only after that.
"""

from __future__ import annotations

import json
import mmap
import time
from collections.abc import Callable, Sequence
from ctypes import Structure, c_double, c_uint32, sizeof
from typing import NamedTuple

from orchestrator.engine.claims.held import (
    BEGIN_SECONDS,
    TAKE_SECONDS,
    Claim,
    Held,
    UnstoredResult,
)

CLAIMS_ROOM = 1 << 13
"""Bytes in which 64 events and what they must not overtake are shown."""

RESULTS_ROOM = 1 << 16
"""Bytes in which results are shown; what does not fit is stored at once."""

CLAIMS_SECONDS = BEGIN_SECONDS + 0.01
"""When a supervisor looks: so much later that what the worker wrote in its own time is seen."""


FREE = 1 << 16
"""How the page of claims has two numbers in one, which is written at once: more than can be claimed together."""

CALLING = 1
"""The number on the page of results while the worker is at a function."""


class Unbegun(NamedTuple):
    """Claimed work that its worker begins no more: since when it is held, and the names of it."""

    since: float
    works: list[str]


class Unstored(NamedTuple):
    """Results that are not stored, and since when the first of them is held."""

    since: float
    results: list[UnstoredResult]


class SharedClaims(Held):
    """What one worker holds; made before it is forked.

    Args:
        wake: told when something new is due, wakes who looks after it and would sleep for longer.
    """

    def __init__(self, wake: Callable[[float], None] = lambda due: None) -> None:
        self._wake = wake
        self.claims, self.results = (
            SharedPage.of(CLAIMS_ROOM),
            SharedPage.of(RESULTS_ROOM),
        )

    # The worker

    def claimed(self, claims: Sequence[Claim], asked: float) -> None:
        if len(claims) > 1 and self.claims.write(json.dumps(claims), asked, 1):
            self._wake(asked + CLAIMS_SECONDS)

    def begun(self, number: int, free: int = 0) -> None:
        self.claims.number = free * FREE + number + 1

    def release(self) -> None:
        self.claims.clear()

    def returned(self, result: UnstoredResult) -> bool:
        line = json.dumps(result) + "\n"
        if self.results.since:
            self.results.number = 0
            return self.results.append(line)
        now = time.monotonic()
        fits = self.results.write(line, now)
        self._wake(now + TAKE_SECONDS)
        return fits

    def calling(self) -> None:
        self.results.number = CALLING

    def stored(self) -> None:
        self.results.clear()

    # Its supervisor

    @property
    def is_calling(self) -> bool:
        """Whether the worker is at a function while it holds results, and cannot see to them."""
        return self.results.number == CALLING

    def unbegun(self) -> Unbegun:
        """What is claimed and not begun; without what must not overtake the work that the worker is at."""
        since, numbers, text = self.claims.read()
        free, number = divmod(numbers, FREE)
        claims = [Claim(*claim) for claim in json.loads(text or "[]")]
        ahead = {claim.order for claim in claims[free:number]} - {""}
        others = (*claims[:free], *claims[number:])
        return Unbegun(since, [one.work for one in others if one.order not in ahead])

    def unstored(self) -> Unstored:
        """The results that are held while the worker is at a function."""
        since, number, text = self.results.read()
        return Unstored(since, results_of(text) if number == CALLING else [])


def results_of(text: str) -> list[UnstoredResult]:
    """The results that a worker has shown."""
    return [UnstoredResult(*json.loads(line)) for line in text.splitlines()]


class Written(NamedTuple):
    """What a page says, as it was at one moment."""

    since: float
    number: int
    text: str


class SharedPage(Structure):
    """Shared memory for a text, with the monotonic time since when it holds, 0 for not at all, and a number.

    It begins with these fields; the text follows them.
    """

    since: float
    number: int
    length: int
    _fields_ = (("since", c_double), ("number", c_uint32), ("length", c_uint32))
    _memory: mmap.mmap

    @classmethod
    def of(cls, room: int) -> SharedPage:
        """Makes an empty page of so many bytes."""
        memory = mmap.mmap(-1, room)
        page = cls.from_buffer(memory)
        page._memory = memory
        return page

    def write(self, text: str, since: float, number: int = 0) -> bool:
        """Writes a page anew; whether there was room for it. Since when it holds is written last."""
        self.clear()
        self.number, self.length = number, 0
        if not self.append(text):
            return False
        self.since = since
        return True

    def append(self, text: str) -> bool:
        """Adds to a page; whether there was room for it."""
        data, begin = text.encode(), sizeof(self) + self.length
        ends = begin + len(data)
        if ends > len(self._memory):
            return False
        self._memory[begin:ends] = data
        self.length += len(data)
        return True

    def clear(self) -> None:
        self.since = 0.0

    def read(self) -> Written:
        """What it says; nothing if the worker is just writing it anew."""
        since = self.since
        number = self.number
        data = self._memory[sizeof(self) : sizeof(self) + self.length]
        if not since or self.since != since:
            return Written(0.0, 0, "")
        return Written(since, number, data.decode())
