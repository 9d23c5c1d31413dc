"""Whose turn it is among claimed events: none runs before all that were received before it are decided."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from orchestrator.engine.claims import leases, take_over
from orchestrator.engine.storage.batch import Statement, database_now
from orchestrator.engine.storage.event_table import BY_ID, BY_KEY
from orchestrator.engine.storage.row_statements import ALL, Condition
from orchestrator.engine.storage.table import Claimed
from orchestrator.engine.storage.tables import events
from orchestrator.models import InboxEvent, ProcessInstance, Verdict
from orchestrator.models.inbox_event import UNDECIDED

A_MOMENT = timedelta(seconds=0.05)
"""How long events wait before they are looked at again, when they come after one that another worker has claimed."""


class Lines:
    """One claimed batch, the oldest first: what may be run one after the other, and what is too early.

    Rows that share a first one before them are in one line: they belong to one process, though that may not exist yet.
    """

    def __init__(self, claimed: Sequence[Claimed[Any]]) -> None:
        self.mine: list[Claimed[Any]] = []
        """What is run, each if those before it in its line are settled by then."""
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
                broken.add(line)  # only for what is behind it

    def line_of(self, item: Claimed[Any]) -> object:
        """What a piece of work has in common with those of its line, and with no others of the batch."""
        return self._lines[item.work.pk]

    def has(self, item: Claimed[Any]) -> bool:
        """Whether all before it in its line were settled."""
        return self._lines[item.work.pk] not in self._stopped

    def stop(self, item: Claimed[Any]) -> None:
        """Notes that it was not settled; what comes after it in its line waits."""
        self._stopped.add(self._lines[item.work.pk])


def followers(
    event: InboxEvent, instance: ProcessInstance | None, now: datetime
) -> list[Statement]:
    """Wakes the events that were postponed until the next attempt of an event that is settled now."""
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
    """Gives events back that come too early.

    What comes after one that is free, or whose lease is over, is due with it, also when that is tried again later. What
    comes after one that a worker has in its hands keeps its place before what was received later: that worker goes on
    with it.

    Args:
        queue: whose events.
        owner: the worker that has claimed them.
        early: what is given back.

    Returns:
        Those whose earlier events another worker has claimed; they are due at once.
    """
    if not early:
        return []
    take_over.unbegun(queue, owner, [leases.name_of(item.work) for item in early])
    # Only now is asked who has those ahead: when they are settled, these can be claimed already.
    numbers = set().union(*(item.ahead for item in early))
    undecided = InboxEvent.objects.filter(UNDECIDED, pk__in=numbers)
    now = database_now()
    soon = now + A_MOMENT
    with transaction.atomic():
        # Locked: the worker that settles one wakes the events behind it, and these must be waiting by then.
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
    """Processes whose next event another worker has claimed: for a moment, their other events are not claimed here."""

    def __init__(self) -> None:
        self._until: dict[UUID | tuple[str, str], float] = {}

    def note(self, found: Iterable[InboxEvent]) -> None:
        """Notes the processes of some events, as they name them."""
        until = time.monotonic() + A_MOMENT.total_seconds()
        for event in found:
            named = (event.target, event.correlation_key)
            self._until[event.process_id or named] = until

    def count(self) -> int:
        """How many are known just now."""
        now = time.monotonic()
        self._until = {name: end for name, end in self._until.items() if end > now}
        return len(self._until)

    def clear(self) -> None:
        self._until.clear()

    def others(self) -> Condition:
        """What is said of the events that may be claimed."""
        ids = [name for name in self._until if isinstance(name, UUID)]
        keys = [name for name in self._until if isinstance(name, tuple)]
        return events.besides(ids, keys) if self._until else ALL
