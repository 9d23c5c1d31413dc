"""How the whole set-up stands: counts, workers, queues, sweep."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Q

from orchestrator import registry
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import (
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    Worker,
)
from orchestrator.queue import depth


def status() -> dict[str, Any]:
    """Counts by definition, living workers, depth of the queues and seconds since the last sweep (None: never)."""
    workers = Worker.objects.alive(database_now())
    swept = workers.aggregate(at=Max("swept_at"))["at"]
    lag = max((database_now() - swept).total_seconds(), 0.0) if swept else None
    return {
        "definitions": definitions(),
        "workers": workers.count(),
        "queues": {name: queue(name) for name in getattr(settings, "RQ_QUEUES", {})},
        "sweep_lag_seconds": lag,
    }


def definitions() -> list[dict[str, Any]]:
    """For each definition how many of its processes have which status, and where the live ones stand."""
    statuses = ProcessInstance.objects.values_list(
        "name", "definition__version", "status"
    )
    steps = ProcessInstance.objects.live().values_list(
        "name", "definition__version", "step"
    )
    found: dict[tuple[str, int], dict[str, Any]] = {
        key: {"name": key[0], "version": key[1], "statuses": {}, "steps": {}}
        for key in registry.definitions
    }
    for noun, rows in (("statuses", statuses), ("steps", steps)):
        for name, version, value, count in rows.annotate(n=Count("id")).order_by():
            row = found.setdefault(
                (name, version),
                {"name": name, "version": version, "statuses": {}, "steps": {}},
            )
            row[noun][value] = count
    return [found[key] for key in sorted(found)]


def queue(name: str) -> dict[str, Any]:
    """A queue's due work, the age of the oldest of it in seconds, and the bells that are out (None: Redis is away)."""
    now = database_now()
    due = Q(queue=name, wake_at__lte=now)
    tables: tuple[Any, ...] = (InboxEvent, IssuedCommand, StepRun)
    rows = [table.objects.filter(due) for table in tables]
    oldest = [
        row
        for row in (
            r.order_by("wake_at").values_list("wake_at", flat=True).first()
            for r in rows
        )
        if row
    ]
    return {
        "due": sum(row.count() for row in rows),
        "oldest_seconds": (now - min(oldest)).total_seconds() if oldest else 0.0,
        "bells": depth(name),
    }
