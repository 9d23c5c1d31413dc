"""Whose turn it is among claimed events: none runs before all that were received before it are decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from orchestrator.engine.claims.give_back import given_back
from orchestrator.engine.storage.batch import Statement, database_now, send
from orchestrator.engine.storage.event_table import UNDECIDED, UNDECIDED_OF_KEY
from orchestrator.engine.storage.table import Claimed
from orchestrator.engine.storage.tables import events
from orchestrator.models import InboxEvent, ProcessInstance, Verdict

TURN = timedelta(seconds=0.05)
"""How soon an event is looked at again that comes after one which others have in their hands."""


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
    """Wakes what was put off until the next attempt of an event that is settled now."""
    if not event.error:
        return []  # nobody waits for longer than a moment
    target, key = event.target, event.correlation_key
    if instance is not None:
        target, key = instance.name, instance.correlation_key
    fresh = {"verdict": Verdict.RECEIVED, "owner": "", "error": "", "remaining": None}

    def woken(index: str, line: dict[str, Any]) -> Statement:
        plain = events.update({"wake_at": now}, {**line, **fresh}, None)
        return plain._replace(sql=f"{plain.sql} AND {index}")

    found = []
    if event.process_id is not None:
        found.append(woken(UNDECIDED, {"process_id": event.process_id}))
    if key:
        line = {"target": target, "correlation_key": key}
        found.append(woken(UNDECIDED_OF_KEY, line))
    return found


def put_off(early: Iterable[Claimed[Any]]) -> None:
    """Gives events back until those before them are settled or tried again; who settles one late wakes them."""
    items = list(early)
    if not items:
        return
    # One that was parked meanwhile holds back nothing any more, though it wakes when its patience is over.
    ahead = InboxEvent.objects.filter(
        pk__in=set().union(*(item.ahead for item in items)),
        owner="",
        verdict=Verdict.RECEIVED,
    )
    moments = dict(ahead.values_list("pk", "wake_at"))
    soon = database_now() + TURN
    send(
        given_back(
            item.work,
            max([soon, *filter(None, map(moments.get, item.ahead))]),
        )
        for item in items
    )
