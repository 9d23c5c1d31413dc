"""The state of the whole set-up: counts, workers, queues, sweep."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q

from orchestrator import registry
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.tables import WORK
from orchestrator.engine.work.claims import DueWork, due_by_queue, unattended_queues
from orchestrator.models import Definition, ProcessInstance, Worker
from orchestrator.models.worker import heartbeat_limit
from orchestrator.queue import (
    base_queue,
    bell_count,
    calls_queue,
    redis_responds,
)

__all__ = [
    "DueWork",
    "WorkerSummary",
    "all_redis_respond",
    "base_queue",
    "calls_queue",
    "database_now",
    "due_by_queue",
    "lease_counts",
    "queue_figures",
    "queue_names",
    "setup_figures",
    "unattended_queues",
    "worker_summary",
]

MOST = 10_000
"""The most rows that one count reads."""


def setup_figures() -> dict[str, Any]:
    """Return counts by definition, live workers, depth of the queues and seconds since the last sweep (None: never)."""
    workers = Worker.objects.alive(database_now())
    swept = workers.aggregate(at=Max("swept_at"))["at"]
    lag = max((database_now() - swept).total_seconds(), 0.0) if swept else None
    return {
        "definitions": definition_counts(),
        "workers": workers.count(),
        "queues": queue_figures(),
        "sweep_lag_seconds": lag,
    }


def definition_counts() -> list[dict[str, Any]]:
    """Return for each definition its processes by status, and its live ones by step.

    Of each definition, it reads the newest MOST live processes and the newest MOST ended ones; `at_least` says of which
    there are more: "live", "ended".
    """
    rows = Definition.objects.values_list("name", "version", "pk")
    keys: dict[tuple[str, int], list[int]] = {key: [] for key in registry.definitions}
    for name, version, pk in rows:
        keys.setdefault((name, version), []).append(pk)
    several = Counter(name for name, _ in keys)
    return [
        _counts(name, version, keys[name, version] if several[name] > 1 else None)
        for name, version in sorted(keys)
    ]


def _counts(name: str, version: int, stored: list[int] | None) -> dict[str, Any]:
    """Return the counts of one version of a definition. `stored` has its rows; None stands for all rows of the name."""
    counts: dict[str, Counter[str]] = {"statuses": Counter(), "steps": Counter()}
    more = []
    of_name = ProcessInstance.objects.filter(name=name).newest_first()
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


def queue_names() -> list[str]:
    """Return the names of the queues that the running code has work on."""
    return sorted(registry.work_queues())


def queue_figures() -> dict[str, dict[str, Any]]:
    """Return each queue's due work, the age of the oldest in seconds, and the bells out (None: Redis is away)."""
    now = database_now()
    found = due_by_queue(now, MOST)
    each = {name: found.get(name, DueWork(0, now)) for name in queue_names()}
    return {
        name: {
            "due": due.number,
            "oldest_seconds": (now - due.oldest).total_seconds(),
            "bells": bell_count(name),
        }
        for name, due in each.items()
    }


@dataclass(frozen=True)
class WorkerSummary:
    """The workers of the whole set-up.

    Args:
        alive: the number of live workers by queue, by the database's clock.
        silent: the number of workers without a recent heartbeat, whose rows are still there.
        seen_at: the last heartbeat of any worker.
        swept_at: the last sweep of any supervisor.
        set_back_at: when the database's clock was last seen to have gone back.
        set_back_from: the moment from which it went back.
    """

    alive: dict[str, int]
    silent: int
    seen_at: datetime | None
    swept_at: datetime | None
    set_back_at: datetime | None
    set_back_from: datetime | None


_NEWEST = {
    "seen": Max("seen_at"),
    "swept": Max("swept_at"),
    "back_at": Max("set_back_at"),
    "back_from": Max("set_back_from"),
}


def worker_summary(now: datetime) -> WorkerSummary:
    """Return the workers at a time of the database's clock."""
    alive = Count("pk", filter=Q(seen_at__gte=heartbeat_limit(now)))
    found = Worker.objects.order_by().values("queue")
    rows = list(found.annotate(alive=alive, all=Count("pk"), **_NEWEST))
    newest = {
        name: max((row[name] for row in rows if row[name]), default=None)
        for name in _NEWEST
    }
    return WorkerSummary(
        alive={row["queue"]: row["alive"] for row in rows if row["alive"]},
        silent=sum(row["all"] - row["alive"] for row in rows),
        seen_at=newest["seen"],
        swept_at=newest["swept"],
        set_back_at=newest["back_at"],
        set_back_from=newest["back_from"],
    )


def lease_counts() -> dict[str, int]:
    """Return the number of running leases by queue; of each table it reads MOST."""
    held: Counter[str] = Counter(dict.fromkeys(queue_names(), 0))
    for table in WORK:
        owned = table.model._default_manager.exclude(owner="")
        rows = owned.filter(wake_at__gt=database_now()).values_list("queue", flat=True)
        held.update(base_queue(name) for name in rows[:MOST])
    return dict(held)


def all_redis_respond() -> bool:
    """Return whether the Redis of every queue is in reach and answers in time."""
    return all(redis_responds(name) for name in queue_names())
