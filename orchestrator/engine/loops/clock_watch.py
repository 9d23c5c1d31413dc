"""Noticing that the database's clock has gone back, and mending what would sleep until the clock has caught up.

Work is due at a moment of the database's clock. After that clock has gone back, what was due at once lies in the
future, and so do the ends of leases. Sleeps, deadlines and patience keep their moments: they promise a time of day.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Model, Q, QuerySet

from orchestrator.configuration.conf import conf
from orchestrator.configuration.notice_settings import Topic
from orchestrator.engine.change import incidents
from orchestrator.engine.notices.outbox import LEASE as NOTICE_LEASE
from orchestrator.engine.sql.batch import CLOCK_SECONDS, database_now, send
from orchestrator.engine.sql.tables import WORK
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
"""By how much the clock may go back unnoticed; what is due then waits no longer than that."""
MARGIN = timedelta(seconds=60)
"""How far beyond the newest known moment other rows may have been stamped."""
SETTLE_SECONDS = CLOCK_SECONDS + 5
"""For how long rows may still get moments of the clock as it was."""
MOST = 5_000
"""The most rows of a table that one look mends, so that the report of the supervisor is not late."""
NEWEST = 1_000
"""How many of the newest rows of a table the first look reads."""

STAMPED: tuple[tuple[type[Model], str], ...] = (
    (InboxEvent, "received_at"),
    (StepRun, "started_at"),
    (Checkpoint, "at"),
    (Worker, "swept_at"),
)
"""The tables whose newest rows tell how far the clock had been, and the column of the moment."""

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
    StepRun: Q(status=StepStatus.RETRYING),
}
"""The work between two attempts."""


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
        """Whether the last mending left nothing over."""
        self.last: SetBack | None = None
        """The last time that was noticed."""

    def look(self) -> None:
        """Read the clock; if it has gone back, tell people, and mend what sleeps for it.

        Whoever else mends the same rows does no harm.

        Raises:
            DatabaseError: the next look notices it again.
        """
        now, at = database_now(), time.monotonic()
        if self._told is None:
            was = newest_stored() or now
        else:
            was = self._told + timedelta(seconds=at - self._at)
        if was - now > SLACK:
            self._notice(SetBack(now, was), at)
        elif self.last is not None and at < self._mends_until:
            again = SetBack(now, now + self.last.gap)
            self._mend(again, at, pauses=not self._is_whole)
        self._told, self._at = now, at

    def _notice(self, found: SetBack, at: float) -> None:
        with transaction.atomic():
            number = self._mend(found, at, pauses=True)
            if self._told is None and not number:
                return  # others have mended it, or it went back long before
            said = "the database's clock has gone back by %s; mended rows: %s"
            log.error(said, found.gap, number)
            _tell(found)
        self.last, self._mends_until = found, at + SETTLE_SECONDS

    def _mend(self, found: SetBack, at: float, *, pauses: bool) -> int:
        """Mend what sleeps; return how many rows were changed."""
        mends = [*self._mends(found), *(self._pauses(found) if pauses else ())]
        changed = [rows.update(**values) for rows, values in mends]
        self._is_whole = MOST not in changed
        if not self._is_whole:
            self._mends_until = at + SETTLE_SECONDS
        return sum(changed)

    def _mends(self, found: SetBack) -> Iterator[Mend]:
        """What may be mended again and again."""
        now, until, mine = found.at, found.was + MARGIN, Q(queue__in=self._queues)
        # First: reactions in line run in the order of these moments.
        issued = Q(wake_at__isnull=False, issued_at__gt=now) & ~Q(line="")
        commands = IssuedCommand.objects.filter(mine, issued).order_by("issued_at")
        yield _some(commands), {"issued_at": F("issued_at") - found.gap}
        lease = timedelta(seconds=conf().LEASE_SECONDS)
        for model in (table.model for table in WORK):
            work = model._default_manager.filter(mine)
            free, held = work.filter(owner=""), work.exclude(owner="")
            at_once = free.filter(DUE_AT_ONCE[model])
            yield _waking(at_once, now, until), {"wake_at": now}
            yield _waking(held, now + lease, until + lease), {"wake_at": now + lease}
        late = Q(wake_at__isnull=False, paced_at__gt=now + SLACK)
        yield BulkOperation.objects.filter(mine, late), {"paced_at": now}
        notices, sent = Notice.objects.filter(owner=""), now + NOTICE_LEASE
        yield _waking(notices, now, until), {"wake_at": now}
        sending = Notice.objects.exclude(owner="")
        yield _waking(sending, sent, until + NOTICE_LEASE), {"wake_at": sent}
        # A lost worker would count as alive until the clock has caught up.
        for beat in ("seen_at", "swept_at"):
            yield Worker.objects.filter(**{f"{beat}__gt": now}), {beat: now}

    def _pauses(self, found: SetBack) -> Iterator[Mend]:
        """No pause that the engine has chosen becomes longer than the longest; none that begins later is cut."""
        pause = timedelta(seconds=conf().BACKOFF_CAP_SECONDS)
        first, last = found.at + pause, found.was + pause
        for model, between in PAUSED.items():
            rows = model._default_manager.filter(between, queue__in=self._queues)
            yield _waking(rows.filter(owner=""), first, last), {"wake_at": first}


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
    """Store what the notices tell of it."""
    gap = timedelta(seconds=round(found.gap.total_seconds()))
    said = Text("the database's clock went back by %(time)s", gap)
    send(
        incidents.note_occurrence(
            [Topic.QUEUE], found.at, state="clock", message=said, text=pack_text(said)
        )
    )
