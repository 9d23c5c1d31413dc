"""The order of claimed events: an event runs after all earlier events of its process are decided."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from orchestrator.engine.sql.batch import Statement, database_now
from orchestrator.engine.sql.event_table import BY_ID, BY_KEY
from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import events
from orchestrator.engine.work import leases, take_over
from orchestrator.models import InboxEvent, ProcessInstance, Verdict
from orchestrator.models.inbox_event import UNDECIDED

A_MOMENT = timedelta(seconds=0.05)
"""How long an event is postponed when another worker has claimed an earlier event of its process."""


class Lines:
    """One claimed batch, the oldest first: the rows that run one after the other, and those that come too early.

    Rows with the same first row ahead of them are in one line: they belong to one process, which may not exist yet.
    """

    def __init__(self, claimed: Sequence[Claimed[Any]]) -> None:
        self.mine: list[Claimed[Any]] = []
        """The rows that run, each after those before it in its line are settled."""
        self.early: list[Claimed[Any]] = []
        self._lines: dict[int, int] = {}
        self._stopped: set[int] = set()
        here: set[int] = set()
        broken: set[int] = set()
        for item in claimed:
            pk = item.work.pk
            first = min(item.ahead, default=pk)
            line = self._lines[pk] = self._lines.get(first, first)
            if item.ahead <= here and line not in broken:
                self.mine.append(item)
                here.add(pk)
            else:
                self.early.append(item)
                broken.add(line)  # only for the rows behind it

    def line_of(self, item: Claimed[Any]) -> object:
        """Return the same value for all work of one line, and another for each other line."""
        return self._lines[item.work.pk]

    def may_run(self, item: Claimed[Any]) -> bool:
        """Whether the work before it in its line was settled."""
        return self._lines[item.work.pk] not in self._stopped

    def stop(self, item: Claimed[Any]) -> None:
        """Note that a piece of work was not settled; the rest of its line waits."""
        self._stopped.add(self._lines[item.work.pk])


def wake_followers(
    event: InboxEvent, instance: ProcessInstance | None, now: datetime
) -> list[Statement]:
    """Return the updates that wake the events behind a failing event that is settled now."""
    if not event.error:
        return []  # no event waits for longer than a moment
    target, key = event.target, event.correlation_key
    if instance is not None:
        target, key = instance.name, instance.correlation_key
    fresh = {"verdict": Verdict.RECEIVED, "owner": "", "error": "", "remaining": None}

    found: list[Statement] = []
    due = {"wake_at": now}
    if event.process_id is not None:
        line: dict[str, Any] = {"process_id": event.process_id}
        found.append(events.update(due, {**line, **fresh}, None, BY_ID))
    if key:
        line = {"target": target, "correlation_key": key}
        found.append(events.update(due, {**line, **fresh}, None, BY_KEY))
    return found


def postpone(
    queue: str, owner: str, early: Sequence[Claimed[InboxEvent]]
) -> list[InboxEvent]:
    """Release events that come too early.

    An event behind an unclaimed one is due together with it, also where that is a later attempt. An event behind a
    claimed one keeps its place before later events: the worker of the claimed one goes on with it.

    Args:
        queue: the queue of the events.
        owner: the worker that has claimed them.
        early: the claims.

    Returns:
        The events behind those that another worker has claimed; they are due at once.
    """
    if not early:
        return []
    take_over.yield_work(queue, owner, [leases.work_name(item.work) for item in early])
    # Ask only now which worker holds the events ahead: when they are settled, these can be claimed already.
    numbers = set().union(*(item.ahead for item in early))
    undecided = InboxEvent.objects.filter(UNDECIDED, pk__in=numbers)
    now = database_now()
    soon = now + A_MOMENT
    with transaction.atomic():
        # Locked: the worker that settles an event wakes those behind it, which must be waiting by then.
        unheld = undecided.filter(Q(owner="") | Q(wake_at__lte=now))
        free = unheld.select_for_update(skip_locked=True)
        moments = {
            pk: wakes if its_queue == queue else max(wakes, soon)
            for pk, its_queue, wakes in free.values_list("pk", "queue", "wake_at")
        }
        others = undecided.exclude(pk__in=moments).exclude(owner=owner)
        held = set(others.values_list("pk", flat=True))
        due = defaultdict[datetime, list[int]](list)
        for item in early:
            before = [moments[pk] for pk in item.ahead & moments.keys()]
            if before and held.isdisjoint(item.ahead):
                due[max(before)].append(item.work.pk)
        for moment, behind in due.items():
            given_back = InboxEvent.objects.filter(pk__in=behind, owner="")
            given_back.filter(wake_at__lt=moment).update(wake_at=moment)
    return [item.work for item in early if not held.isdisjoint(item.ahead)]


class ClaimedElsewhere:
    """Processes whose next event another worker has claimed: for a moment, this worker claims none of their events."""

    def __init__(self) -> None:
        self._until: dict[UUID | tuple[str, str], float] = {}

    def note(self, found: Iterable[InboxEvent]) -> None:
        """Note the processes of some events, as the events name them."""
        until = time.monotonic() + A_MOMENT.total_seconds()
        for event in found:
            named = (event.target, event.correlation_key)
            self._until[event.process_id or named] = until

    def count(self) -> int:
        """Return how many processes are noted now."""
        now = time.monotonic()
        self._until = {name: end for name, end in self._until.items() if end > now}
        return len(self._until)

    def clear(self) -> None:
        self._until.clear()

    def claimable(self) -> Condition:
        """Return the condition of the events that may be claimed."""
        ids = [name for name in self._until if isinstance(name, UUID)]
        keys = [name for name in self._until if isinstance(name, tuple)]
        return events.besides(ids, keys) if self._until else ALL
