"""What a worker holds beside the work that it is at, shown to whoever supervises it.

A worker holds work that it has claimed and not begun, and results of quick steps that are not stored yet. While it runs
another function it can do neither: after a moment other workers take both over (`take_over`).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

MOST = 50
"""How many pieces of work one commit stores at most."""

BEGIN_SECONDS = 0.1
"""For how long after it asked for work a worker begins what it got; what is left then is for others."""

HOLD_SECONDS = 0.01
"""For how long a worker goes on with other work while it holds what came of one piece."""

TAKE_SECONDS = HOLD_SECONDS + 0.006
"""When others store the results that are still held.

So much later that they see what the worker wrote in its own time, and that it most often stores them itself together
with the result of a quick element that is just running.
"""


class UnstoredResult(NamedTuple):
    """A result that is not stored yet.

    Args:
        key: of its visit.
        attempt: that gave it.
        result: as JSON values.
        checksum: of these.
    """

    key: int
    attempt: int
    result: Any
    checksum: str


class Claim(NamedTuple):
    """A piece of claimed work.

    Args:
        work: its name (`leases.name_of`).
        order: what it has in common with work that it must not overtake; "" for nothing.
    """

    work: str
    order: str


class Held:
    """Where a worker shows what it holds.

    Nobody supervises the worker of this one itself: it lets go of claimed work, and stores each result at once.
    """

    def claimed(self, claims: Sequence[Claim], asked: float) -> None:
        """Shows what was claimed at a monotonic time, in the order in which it is begun; the first of it is."""

    def begun(self, number: int, free: int = 0) -> None:
        """Shows that the worker has come to another one. Only then it looks whether it may still begin it.

        Args:
            number: which, counted from 0.
            free: so many of the first may be taken over all the same: they are only decided.
        """

    def release(self) -> None:
        """Shows that nothing of what was claimed is waiting any more."""

    def returned(self, result: UnstoredResult) -> bool:
        """Shows a result that is held; False if no supervisor sees it, so that it must be stored now."""
        return False

    def calling(self) -> None:
        """Shows that the worker is about to call another element's function, which may take its time.

        Until then, and from the next result on, it sees to what it holds itself.
        """

    def stored(self) -> None:
        """Shows that no result is held any more."""


UNSEEN = Held()


class Holding(Generic[T]):
    """What is done and not stored, held for a moment so that several share a commit."""

    def __init__(self) -> None:
        self._held: dict[Hashable, T] = {}
        self._since = 0.0

    def __bool__(self) -> bool:
        return bool(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def hold(self, key: Hashable, one: T) -> None:
        """Takes one in, under a key that no other has."""
        if not self._held:
            self._since = time.monotonic()
        self._held[key] = one

    @property
    def waited(self) -> float:
        """For how many seconds the first of them has been held."""
        return time.monotonic() - self._since

    @property
    def are_due(self) -> bool:
        """Whether what is held is to be stored now."""
        full = len(self._held) >= MOST
        return bool(self._held) and (full or self.waited > HOLD_SECONDS)

    def take(self) -> list[T]:
        """Return what is held, to be stored."""
        held, self._held = self._held, {}
        return [*held.values()]
