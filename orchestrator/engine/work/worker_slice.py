"""A worker at a queue for one time slice, and the watch over each piece of its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from orchestrator.configuration.conf import conf
from orchestrator.engine.work import leases
from orchestrator.engine.work.held_work import UNSEEN, HeldWork
from orchestrator.models import Work

Reporting = Callable[[], AbstractContextManager[None]]
"""Reports a heartbeat of the piece of work. The engine's own work inside this context does not count against it."""


class Watch(Protocol):
    """A context manager around one piece of work."""

    def __call__(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> AbstractContextManager[Reporting]:
        """Watch it.

        Args:
            seconds: how long it may take.
            work: its name, for `leases.end_leases`.
            heartbeat: seconds within which it must report, again and again.
        """


@contextmanager
def no_watch(
    seconds: float, work: str, heartbeat: float | None = None
) -> Iterator[Reporting]:
    """Watch nothing."""
    yield nullcontext


@dataclass(frozen=True)
class WorkerSlice:
    """A worker at a queue, for one time slice.

    Args:
        queue: the queue's name.
        owner: the worker's boot id.
        over: returns whether the slice has ended or the worker is to stop; called between pieces of work.
        watch: wraps each piece of work, with the seconds that it may take.
        held: where the worker shows its unbegun claims and its unstored results.
    """

    queue: str
    owner: str
    over: Callable[[], bool] = lambda: False
    watch: Watch = no_watch
    held: HeldWork = UNSEEN

    def watched(
        self, work: Work, seconds: float = 0
    ) -> AbstractContextManager[Reporting]:
        """Watch the handling of a piece of work: for its own seconds, and for as long as a transaction may take.

        The supervisor ends a worker that hangs, and the lost attempt counts.
        """
        return self.watch(seconds + conf().EVENT_TIMEOUT, leases.work_name(work))
