"""Who does the work: each queue with its workers, and what is due on it since when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitoring.queries.counts import FEW, Capped
from orchestrator.setup_status import crew, database_now, due_by_queue, queues

NO_SWEEP = timedelta(seconds=60)
"""A sweep is due every second or so; deadlines and lost work wait for it."""

LATE = timedelta(seconds=60)
"""Work that has been due for longer makes a queue behind."""


@dataclass(frozen=True)
class ServedQueue:
    """A queue, how many workers live for it, how much work is due on it, and since when the oldest."""

    name: str
    workers: int
    due: Capped
    oldest: datetime | None

    @property
    def unserved(self) -> bool:
        """Work is due, and nobody is there to do it."""
        return bool(self.due) and not self.workers

    def late(self, now: datetime) -> bool:
        """Whether its work has waited for long."""
        return self.oldest is not None and now - self.oldest > LATE


@dataclass(frozen=True)
class Machinery:
    """The queues of the running code, and those that have workers or due work besides; and when was swept last."""

    now: datetime
    """By the clock of the database."""
    milliseconds: float
    """How long the database took to say so."""
    queues: tuple[ServedQueue, ...]
    swept_at: datetime | None
    silent: int
    """Workers that have not been heard of lately, and that nobody has cleared away yet."""
    seen_at: datetime | None
    """When any worker was heard of last."""

    @property
    def workers(self) -> int:
        return sum(queue.workers for queue in self.queues)

    @property
    def due(self) -> Capped:
        """The work that is due in all."""
        return Capped(min(sum(queue.due.number for queue in self.queues), FEW), FEW)

    @property
    def oldest(self) -> datetime | None:
        """Since when the oldest work is due."""
        return min((q.oldest for q in self.queues if q.oldest), default=None)

    @property
    def unswept(self) -> bool:
        """Whether nobody has swept for long."""
        return self.swept_at is not None and self.now - self.swept_at > NO_SWEEP

    @property
    def unserved(self) -> tuple[str, ...]:
        return tuple(queue.name for queue in self.queues if queue.unserved)


def machinery() -> Machinery:
    """How it is now: the queues that nobody serves first, then by name."""
    begun = time.monotonic()
    now = database_now()
    milliseconds = (time.monotonic() - begun) * 1000
    there, due = crew(now), due_by_queue(now, FEW)
    found = [
        ServedQueue(
            name,
            there.alive.get(name, 0),
            Capped(min(due[name].number, FEW) if name in due else 0, FEW),
            due[name].oldest if name in due else None,
        )
        for name in {*queues(), *there.alive, *due}
    ]
    found.sort(key=lambda queue: (not queue.unserved, queue.name))
    seen_at, swept_at = there.seen_at, there.swept_at
    return Machinery(now, milliseconds, tuple(found), swept_at, there.silent, seen_at)
