"""Workers, queues with their due work, and the sweep."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitoring.queries.counts import FEW, Capped
from orchestrator.setup_status import (
    database_now,
    due_by_queue,
    queue_names,
    worker_summary,
)

NO_SWEEP = timedelta(seconds=60)
"""The age of the last sweep above which it is a problem; deadlines and lost work wait for the sweep."""

LATE = timedelta(seconds=60)
"""The age of due work above which a queue is behind."""


SET_BACK_SHOWN = timedelta(hours=1)
"""The time for which the console shows that the database's clock has gone back."""


def start_command(queue: str = "") -> str:
    """Return the command that starts workers of a queue."""
    return "manage.py work" + (
        f" --queue {queue}" if queue not in ("", "default") else ""
    )


@dataclass(frozen=True)
class ServedQueue:
    """A queue, its living workers, its due work, and the time of the oldest."""

    name: str
    workers: int
    due: Capped
    oldest: datetime | None

    @property
    def unserved(self) -> bool:
        """Whether work is due without a worker."""
        return bool(self.due) and not self.workers

    def late(self, now: datetime) -> bool:
        """Whether its oldest work is late."""
        return self.oldest is not None and now - self.oldest > LATE


@dataclass(frozen=True)
class Machinery:
    """All queues of the running code, of workers and of due work; and the last sweep."""

    now: datetime
    """The time, by the clock of the database."""
    milliseconds: float
    """The response time of the database."""
    queues: tuple[ServedQueue, ...]
    swept_at: datetime | None
    silent: int
    """Registered workers without a recent heartbeat."""
    seen_at: datetime | None
    """The last heartbeat of any worker."""
    set_back_at: datetime | None = None
    """The last moment at which the database's clock was seen to have gone back."""
    set_back_from: datetime | None = None

    @property
    def set_back(self) -> timedelta | None:
        """The time by which the database's clock has gone back in the last hour."""
        at, was = self.set_back_at, self.set_back_from
        if at is None or was is None or self.now - at > SET_BACK_SHOWN:
            return None
        return was - at

    @property
    def workers(self) -> int:
        return sum(queue.workers for queue in self.queues)

    @property
    def due(self) -> Capped:
        """The number of due work in all queues."""
        return Capped(min(sum(queue.due.number for queue in self.queues), FEW), FEW)

    @property
    def oldest(self) -> datetime | None:
        """The time of the oldest due work."""
        return min((q.oldest for q in self.queues if q.oldest), default=None)

    @property
    def unswept(self) -> bool:
        """Whether the last sweep is too old."""
        return self.swept_at is not None and self.now - self.swept_at > NO_SWEEP

    @property
    def unserved(self) -> tuple[str, ...]:
        return tuple(queue.name for queue in self.queues if queue.unserved)


def machinery() -> Machinery:
    """Return the current state; queues without workers come first, then queues by name."""
    begun = time.monotonic()
    now = database_now()
    milliseconds = (time.monotonic() - begun) * 1000
    there, due = worker_summary(now), due_by_queue(now, FEW)
    found = [
        ServedQueue(
            name,
            there.alive.get(name, 0),
            Capped(min(due[name].number, FEW) if name in due else 0, FEW),
            due[name].oldest if name in due else None,
        )
        for name in {*queue_names(), *there.alive, *due}
    ]
    found.sort(key=lambda queue: (not queue.unserved, queue.name))
    return Machinery(
        now,
        milliseconds,
        tuple(found),
        there.swept_at,
        there.silent,
        there.seen_at,
        there.set_back_at,
        there.set_back_from,
    )
