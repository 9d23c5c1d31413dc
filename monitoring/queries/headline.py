"""What is wrong, the most urgent first: with that the first page begins. Nothing is asked here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from monitoring.pulse import Beat
from monitoring.queries.attention import OfKind
from monitoring.queries.counts import FEW, Capped
from monitoring.queries.failures import AlikeFailures
from monitoring.queries.machinery import Machinery


class Urgency(IntEnum):
    """What can be wrong: first what stops everything, then what stops some, then what only makes slower."""

    NO_WORKER = 1
    UNSERVED = 2
    NO_SWEEP = 3
    FAILURES = 4
    STALLED = 5
    OVERDUE = 6
    ESCALATED = 7
    REDIS = 8
    LATE = 9
    EVENTS = 10
    LIVE = 11
    DECISIONS = 12


OF_KIND = {
    "stalled": Urgency.STALLED,
    "overdue": Urgency.OVERDUE,
    "escalated": Urgency.ESCALATED,
    "events": Urgency.EVENTS,
    "decisions": Urgency.DECISIONS,
}

NONE = Capped(0, FEW)

NO_SWEEP = timedelta(seconds=60)
"""A sweep is due every second or so; deadlines and lost work wait for it."""

LATE = timedelta(seconds=60)
"""Work that has been due for longer makes a queue behind."""


@dataclass(frozen=True)
class Facts:
    """What is known now.

    Args:
        machinery: workers, queues and the sweep.
        needs: what needs a person, by kind.
        largest: of the groups of failures.
        redis: whether it answers.
        live: whether the channel layer does.
    """

    machinery: Machinery
    needs: OfKind
    largest: AlikeFailures | None
    redis: Beat
    live: Beat


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Args:
        urgency: what it is.
        since: when it began.
        number: how much of it there is.
        names: the queues that it is about.
        address: the list that has it.
    """

    urgency: Urgency
    since: datetime | None = None
    number: Capped = NONE
    names: tuple[str, ...] = ()
    address: str = ""

    @property
    def name(self) -> str:
        return self.urgency.name.lower()

    @property
    def alarming(self) -> bool:
        """Whether it stands in red: what only makes slower, or asks somebody, does not."""
        return self.urgency < Urgency.REDIS or self.urgency == Urgency.EVENTS


def problems(facts: Facts) -> list[Problem]:
    """Everything that is wrong, the most urgent first; of equals the oldest."""
    far = facts.machinery.now + timedelta(days=1)
    found = [*_of_machinery(facts), *_of_processes(facts)]
    return sorted(found, key=lambda one: (one.urgency, one.since or far))


def _of_machinery(facts: Facts) -> Iterator[Problem]:
    machinery = facts.machinery
    if machinery.workers:
        yield from _of_queues(machinery)
    else:
        yield Problem(Urgency.NO_WORKER, machinery.seen_at, machinery.due)
    if facts.redis.up is False:
        yield Problem(Urgency.REDIS, facts.redis.since)
    elif facts.live.up is False:
        yield Problem(Urgency.LIVE, facts.live.since)


def _of_queues(machinery: Machinery) -> Iterator[Problem]:
    """What is wrong although somebody works."""
    swept = machinery.swept_at
    if swept is not None and machinery.now - swept > NO_SWEEP:
        yield Problem(Urgency.NO_SWEEP, swept)
    for queue in machinery.queues:
        name = (queue.name,)
        if queue.unserved:
            yield Problem(Urgency.UNSERVED, queue.oldest, queue.due, name)
        elif queue.oldest is not None and machinery.now - queue.oldest > LATE:
            yield Problem(Urgency.LATE, queue.oldest, queue.due, name)


def _of_processes(facts: Facts) -> Iterator[Problem]:
    if facts.largest is not None:
        every = facts.needs["failures"]
        number = every.number or facts.largest.number  # which was counted later
        yield Problem(Urgency.FAILURES, every.oldest, number, address=every.address)
    for kind, urgency in OF_KIND.items():
        need = facts.needs.get(kind)
        if need is not None and need.number:
            yield Problem(urgency, need.oldest, need.number, address=need.address)
