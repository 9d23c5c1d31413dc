"""Outages of queues: recipients get a notice when a queue has no worker, and another when a worker is back."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from orchestrator.configuration.notice_settings import Topic
from orchestrator.engine.change import incidents
from orchestrator.engine.notices import lock
from orchestrator.engine.sql.batch import Statement, database_now, send
from orchestrator.engine.work.claims import unattended_queues
from orchestrator.models import QueueOutage

PATIENCE = timedelta(seconds=15)
"""The time without workers before an outage is told; a restart takes less."""
UNSEEN = timedelta(minutes=1)
"""The age after which an earlier sighting no longer counts."""


def check_queues() -> None:
    """Record queues without workers, and end the outages of queues with workers.

    Raises:
        DatabaseError: the database refused the transaction.
    """
    dead = set(unattended_queues())
    if not dead and not QueueOutage.objects.exists():
        return
    with transaction.atomic(durable=True):
        if not lock.acquire_turn():
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
        send(_occurrence(outage, "dead", outage.since))
    outage.save()


def _end(outage: QueueOutage, now: datetime) -> None:
    if outage.told_at is not None:
        send(_occurrence(outage, "back", now))
    outage.delete()


def _occurrence(outage: QueueOutage, state: str, at: datetime) -> list[Statement]:
    return incidents.note_occurrence([Topic.QUEUE], at, queue=outage.queue, state=state)
