"""A watch over the database's clock: when it has gone back, work that was due is made due again.

Work is due at a moment of the database's clock. After that clock has gone back, what was due at once lies in the
future, and so do the ends of leases. Sleeps, deadlines and patience keep their moments: they promise a time of day.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import Max, Model, Q, QuerySet

from orchestrator.configuration.conf import conf
from orchestrator.configuration.notice_settings import Topic
from orchestrator.engine.change import incidents
from orchestrator.engine.sql.batch import CLOCK_SECONDS, database_now, send
from orchestrator.models import (
    BulkOperation,
    Checkpoint,
    CommandStatus,
    InboxEvent,
    IssuedCommand,
    Notice,
    StepRun,
    StepStatus,
    Verdict,
    Worker,
)
from orchestrator.queue import calls_queue
from orchestrator.text import Text, pack_text

log = logging.getLogger(__name__)

SLACK = timedelta(seconds=5)
"""The longest jump back that goes unnoticed; due work then waits no longer than that."""
MARGIN = timedelta(seconds=60)
"""The longest time by which other rows may be ahead of the newest known moment."""
SETTLE_SECONDS = CLOCK_SECONDS + 5
"""The time in which workers may still write moments of the clock as it was."""
MOST = 5_000
"""The most rows of a table that one look mends, so that the report of the supervisor is not late."""
NEWEST = 1_000
"""The newest rows of a table that the first look reads."""

STAMPED: tuple[tuple[type[Model], str], ...] = (
    (InboxEvent, "received_at"),
    (StepRun, "started_at"),
    (Checkpoint, "at"),
    (Worker, "swept_at"),
)
"""The tables whose newest rows have the newest moments, and the column of the moment."""

BETWEEN_ATTEMPTS = Q(verdict=Verdict.RECEIVED) & ~Q(error="")
WAITS_FOR_CHILD = Q(
    child__isnull=False, status__in=[StepStatus.WAITING, StepStatus.FAILED]
)
"""A visit that looks at its sub-process has no timer."""

DUE_AT_ONCE: dict[type[Model], Q] = {
    InboxEvent: ~BETWEEN_ATTEMPTS,
    IssuedCommand: Q(status=CommandStatus.READY),
    StepRun: Q(status=StepStatus.READY) | WAITS_FOR_CHILD,
    BulkOperation: Q(),
}
"""The work that no timer keeps from being due; to look at a parked or unrouted event early does no harm."""

PAUSED: dict[type[Model], Q] = {
    InboxEvent: BETWEEN_ATTEMPTS,
    IssuedCommand: Q(status=CommandStatus.RETRYING),
    StepRun: Q(status__in=[StepStatus.RETRYING, StepStatus.READY]),
}
"""The work between two attempts, or between two calls of a step that polls: of ready steps no other is due so late."""


Mend = tuple[QuerySet[Any], dict[str, Any]]
"""Rows, and the columns that they get."""


@dataclass(frozen=True)
class SetBack:
    """One time at which the clock has gone back.

    Args:
        at: when this was noticed, by the clock as it is.
        was: the moment by the clock as it was.
    """

    at: datetime
    was: datetime

    @property
    def gap(self) -> timedelta:
        return self.was - self.at


class ClockWatch:
    """The watch of one supervisor over the database's clock.

    It expects the clock to go on with this machine's monotonic clock. Its first look reads how far the clock had been
    from the newest stored rows: the clock may have gone back while no worker ran.

    Args:
        queue: the queue whose work it mends, with its calls.
    """

    def __init__(self, queue: str) -> None:
        self._queues = [queue, calls_queue(queue)]
        self._told: datetime | None = None
        self._at = 0.0
        self._mends_until = 0.0
        self._is_whole = True
        """Whether the last mending has reached all rows."""
        self.last: SetBack | None = None
        """The last time that was noticed."""

    def look(self) -> None:
        """Read the clock; if it has gone back, tell people, and make due work due again.

        Several supervisors may mend the same rows.

        Raises:
            DatabaseError: the next look notices it again.
        """
        begun, now, at = time.monotonic(), database_now(), time.monotonic()
        was = newest_stored() or now if self._told is None else self._told
        if self._told is not None:
            # The least time that has passed: an answer that comes late is no earlier moment.
            was += timedelta(seconds=begun - self._at)
        if was - now > SLACK:
            self._notice(SetBack(now, was), at)
        elif self.last is not None and at < self._mends_until:
            self._mend_again(SetBack(now, now + self.last.gap), at)
        self._told, self._at = now, at

    def _notice(self, found: SetBack, at: float) -> None:
        with transaction.atomic():
            changed = self._mend(self._works(found), self._pauses(found))
            number = sum(changed)
            if self._told is None and not number:
                return  # others have mended it, or it went back long before
            changed += self._mend(self._others(found))
            _tell(found)
        said = "the database's clock has gone back by %s; work that was due goes on: %s"
        log.error(said, found.gap, number)
        self.last, self._mends_until = found, at + SETTLE_SECONDS
        self._is_whole = MOST not in changed

    def _mend_again(self, found: SetBack, at: float) -> None:
        changed = self._mend(self._works(found))
        if not self._is_whole:
            changed += self._mend(self._pauses(found), self._others(found))
        self._is_whole = MOST not in changed
        if not self._is_whole:
            self._mends_until = at + SETTLE_SECONDS

    def _mend(self, *mends: Iterator[Mend]) -> list[int]:
        """Change rows; return how many each time."""
        return [rows.update(**values) for rows, values in chain(*mends)]

    def _works(self, found: SetBack) -> Iterator[Mend]:
        """The work that was due, and the leases. To mend these again does no harm."""
        now, until = found.at, found.was + MARGIN
        lease = timedelta(seconds=conf().LEASE_SECONDS)
        for model, at_once in DUE_AT_ONCE.items():
            work = model._default_manager.filter(queue__in=self._queues)
            due = work.filter(at_once, owner="")
            yield _waking(due, now, until), {"wake_at": now}
            held = work.exclude(owner="")
            yield _waking(held, now + lease, until + lease), {"wake_at": now + lease}

    def _pauses(self, found: SetBack) -> Iterator[Mend]:
        """The pauses between attempts: none that the engine has chosen becomes longer than the longest."""
        pause = timedelta(seconds=conf().BACKOFF_CAP_SECONDS)
        first, last = found.at + pause, found.was + pause
        for model, between in PAUSED.items():
            rows = model._default_manager.filter(between, queue__in=self._queues)
            yield _waking(rows.filter(owner=""), first, last), {"wake_at": first}

    def _others(self, found: SetBack) -> Iterator[Mend]:
        """Rows that are mended once: pauses that begin later stay as they are."""
        now, until = found.at, found.was + MARGIN
        mine = Q(queue__in=self._queues)
        paced = Q(wake_at__isnull=False, paced_at__gt=now + SLACK)
        yield BulkOperation.objects.filter(mine, paced), {"paced_at": now}
        waiting, sending = Q(owner=""), ~Q(owner="")
        yield _waking(Notice.objects.filter(waiting), now, until), {"wake_at": now}
        last, rows = now + MARGIN, Notice.objects.filter(sending)  # as long as a lease
        yield _waking(rows, last, until + MARGIN), {"wake_at": last}
        # A lost worker would count as alive until the clock has caught up.
        for beat in ("seen_at", "swept_at"):
            yield Worker.objects.filter(**{f"{beat}__gt": now + SLACK}), {beat: now}


def newest_stored() -> datetime | None:
    """Return the newest moment among the newest rows; None without rows."""
    found = (
        model._default_manager.order_by("-pk")[:NEWEST].aggregate(at=Max(moment))["at"]
        for model, moment in STAMPED
    )
    return max((at for at in found if at is not None), default=None)


def _waking(rows: QuerySet[Any], after: datetime, until: datetime) -> QuerySet[Any]:
    due = rows.filter(wake_at__gt=after, wake_at__lte=until)
    return _some(due.order_by("wake_at"))


def _some(rows: QuerySet[Any]) -> QuerySet[Any]:
    """The first of some ordered rows; a row that has changed meanwhile is left out."""
    return rows.order_by().filter(pk__in=rows.values("pk")[:MOST])


def _tell(found: SetBack) -> None:
    """Store the occurrence for notices, unless another supervisor has noticed it just before."""
    set_back = (found.at - MARGIN, found.at + SLACK)
    if Worker.objects.filter(set_back_at__range=set_back).exists():
        return
    gap = timedelta(seconds=round(found.gap.total_seconds()))
    said = Text("the database's clock went back by %(time)s", gap)
    send(
        incidents.note_occurrence(
            [Topic.QUEUE], found.at, state="clock", message=said, text=pack_text(said)
        )
    )
