"""Who does the work: each queue with its workers, and what is due on it since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from monitoring.queries.counts import FEW, Capped
from orchestrator.setup_status import due_by_queue, queues, workers_by_queue


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


@dataclass(frozen=True)
class Machinery:
    """The queues of the running code, and those that have workers or due work besides; and when was swept last."""

    queues: tuple[ServedQueue, ...]
    swept_at: datetime | None

    @property
    def workers(self) -> int:
        return sum(queue.workers for queue in self.queues)

    @property
    def due(self) -> Capped:
        """The work that is due in all."""
        return Capped(min(sum(queue.due.number for queue in self.queues), FEW), FEW)

    @property
    def unserved(self) -> tuple[str, ...]:
        return tuple(queue.name for queue in self.queues if queue.unserved)


def machinery() -> Machinery:
    """How it is now: the queues that nobody serves first, then by name."""
    (workers, swept_at), due = workers_by_queue(), due_by_queue(FEW)
    found = [
        ServedQueue(
            name,
            workers.get(name, 0),
            Capped(min(due[name].number, FEW) if name in due else 0, FEW),
            due[name].oldest if name in due else None,
        )
        for name in {*queues(), *workers, *due}
    ]
    found.sort(key=lambda queue: (not queue.unserved, queue.name))
    return Machinery(tuple(found), swept_at)
