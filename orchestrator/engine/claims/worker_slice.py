"""A worker at a queue for one time slice, and how it is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

Alive = Callable[[], None]
"""Says that the piece of work is still getting on."""


class Watch(Protocol):
    """Wraps one piece of work."""

    def __call__(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> AbstractContextManager[Alive]:
        """Watches it.

        Args:
            seconds: how long it may take.
            work: its name, for `leases.end`.
            heartbeat: seconds within which it must say that it is alive.
        """


@contextmanager
def nobody(
    seconds: float, work: str, heartbeat: float | None = None
) -> Iterator[Alive]:
    """Watches nothing."""
    yield lambda: None


@dataclass(frozen=True)
class WorkerSlice:
    """A worker at a queue, for one time slice.

    Args:
        queue: which.
        owner: the worker's boot id.
        over: whether the slice has ended or the worker was asked to stop; asked between pieces of work.
        watch: told of each piece of work and the seconds it may take.
    """

    queue: str
    owner: str
    over: Callable[[], bool] = lambda: False
    watch: Watch = nobody
