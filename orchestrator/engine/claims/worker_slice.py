"""A worker at a queue for one time slice, and how it is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from orchestrator.conf import conf
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.held import UNSEEN, Held
from orchestrator.models import Work

Reporting = Callable[[], AbstractContextManager[None]]
"""Says that the piece of work is getting on. What the engine does meanwhile takes none of its heartbeat."""


class Watch(Protocol):
    """Wraps one piece of work."""

    def __call__(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> AbstractContextManager[Reporting]:
        """Watches it.

        Args:
            seconds: how long it may take.
            work: its name, for `leases.end`.
            heartbeat: seconds within which it must report, again and again.
        """


@contextmanager
def no_watch(
    seconds: float, work: str, heartbeat: float | None = None
) -> Iterator[Reporting]:
    """Watches nothing."""
    yield nullcontext


@dataclass(frozen=True)
class WorkerSlice:
    """A worker at a queue, for one time slice.

    Args:
        queue: which.
        owner: the worker's boot id.
        over: whether the slice has ended or the worker was asked to stop; asked between pieces of work.
        watch: told of each piece of work and the seconds it may take.
        held: where it is shown what the worker holds beside that.
    """

    queue: str
    owner: str
    over: Callable[[], bool] = lambda: False
    watch: Watch = no_watch
    held: Held = UNSEEN

    def watched(
        self, work: Work, seconds: float = 0
    ) -> AbstractContextManager[Reporting]:
        """Watches what is done with a piece of work: so many seconds of its own, and as long as a transaction may take.

        What hangs is ended by the supervisor, and a death in between is counted.
        """
        return self.watch(seconds + conf().EVENT_TIMEOUT, leases.name_of(work))
