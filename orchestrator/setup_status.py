"""How the whole set-up stands: counts, workers, queues, sweep."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.conf import settings
from django.db.models import Max, Q

from orchestrator import registry
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import (
    Definition,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    Worker,
)
from orchestrator.queue import calls_of, depth

MOST = 10_000
"""Rows that one count looks at."""


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
    """For each definition how many of its processes have which status, and where the live ones stand.

    Of each definition no more than MOST live ones and MOST that have ended are looked at, the newest first; `at_least`
    says which of the two were more: "live", "ended".
    """
    rows = Definition.objects.values_list("name", "version", "pk")
    keys: dict[tuple[str, int], list[int]] = {key: [] for key in registry.definitions}
    for name, version, pk in rows:
        keys.setdefault((name, version), []).append(pk)
    several = Counter(name for name, _ in keys)
    return [
        _counted(name, version, keys[name, version] if several[name] > 1 else None)
        for name, version in sorted(keys)
    ]


def _counted(name: str, version: int, stored: list[int] | None) -> dict[str, Any]:
    """The counts of one version of a definition; its rows, unless it is the only one of its name."""
    counts: dict[str, Counter[str]] = {"statuses": Counter(), "steps": Counter()}
    more = []
    of_name = ProcessInstance.objects.filter(name=name).order_by("-pk")
    for noun, rows in (("live", of_name.live()), ("ended", of_name.ended())):
        read = rows.values_list("definition_id", "status", "step")[:MOST]
        found = list(read)
        more += [noun] if len(found) == MOST else []
        for definition, status, step in found:
            if stored is None or definition in stored:
                counts["statuses"][status] += 1
                if noun == "live":
                    counts["steps"][step] += 1
    plain = {noun: dict(counted) for noun, counted in counts.items()}
    return {"name": name, "version": version, **plain, "at_least": more}


def queue(name: str) -> dict[str, Any]:
    """A queue's due work, the age of the oldest of it in seconds, and the bells that are out (None: Redis is away)."""
    now = database_now()
    due = Q(queue__in=[name, calls_of(name)], wake_at__lte=now)
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
        "due": sum(row[:MOST].count() for row in rows),
        "oldest_seconds": (now - min(oldest)).total_seconds() if oldest else 0.0,
        "bells": depth(name),
    }
