"""Dead queues: people are told once after some seconds without a worker, and once when a worker is back."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from orchestrator.engine.change import incidents
from orchestrator.engine.claims.due import unattended_queues
from orchestrator.engine.notices import turn
from orchestrator.engine.storage.batch import Statement, database_now, send
from orchestrator.models import QueueOutage
from orchestrator.notice_settings import Topic

PATIENCE = timedelta(seconds=15)
"""How long a queue may be without workers before people are told: one that is only restarted is not told of."""
UNSEEN = timedelta(minutes=1)
"""After this long without a look, earlier sightings say nothing of now."""


def look() -> None:
    """Looks for dead queues, and for those that are dead no longer.

    Raises:
        DatabaseError: it refused for now.
    """
    dead = set(unattended_queues())
    if not dead and not QueueOutage.objects.exists():
        return
    with transaction.atomic(durable=True):
        if not turn.is_mine():
            return
        now = database_now()
        known = {one.queue: one for one in QueueOutage.objects.all()}
        for queue in dead:
            new = QueueOutage(queue=queue, since=now, seen_at=now)
            _note(known.get(queue, new), now)
        for queue in known.keys() - dead:
            _end(known[queue], now)


def _note(outage: QueueOutage, now: datetime) -> None:
    if outage.told_at is None and now - outage.seen_at > UNSEEN:
        outage.since = now
    outage.seen_at = now
    if outage.told_at is None and now - outage.since >= PATIENCE:
        outage.told_at = now
        send(_told(outage, "dead", outage.since))
    outage.save()


def _end(outage: QueueOutage, now: datetime) -> None:
    if outage.told_at is not None:
        send(_told(outage, "back", now))
    outage.delete()


def _told(outage: QueueOutage, state: str, at: datetime) -> list[Statement]:
    return incidents.note_occurrence([Topic.QUEUE], at, queue=outage.queue, state=state)
