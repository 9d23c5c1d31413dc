"""How the whole set-up stands: counts, workers, queues, sweep."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q

from orchestrator import registry
from orchestrator.engine.claims.due import Due, due_by_queue, unattended
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.storage.tables import WORK
from orchestrator.models import Definition, ProcessInstance, Worker
from orchestrator.models.worker import lately
from orchestrator.queue import answers, depth, plain

__all__ = [
    "Crew",
    "Due",
    "database_now",
    "due_by_queue",
    "leases",
    "queue_figures",
    "queues",
    "redis_answers",
    "status",
    "unattended",
    "worker_summary",
]

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
        "queues": queue_figures(),
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


def queues() -> list[str]:
    """The names of the queues that the running code has work on."""
    return sorted(registry.queues())


def queue_figures() -> dict[str, dict[str, Any]]:
    """Each queue's due work, the age of the oldest in seconds, and the bells that are out (None: Redis is away)."""
    now = database_now()
    found = due_by_queue(now, MOST)
    each = {name: found.get(name, Due(0, now)) for name in queues()}
    return {
        name: {
            "due": due.number,
            "oldest_seconds": (now - due.oldest).total_seconds(),
            "bells": depth(name),
        }
        for name, due in each.items()
    }


@dataclass(frozen=True)
class Crew:
    """The workers of the whole set-up.

    Args:
        alive: how many live for each queue that has any, by the database's clock.
        silent: how many have not been heard of lately, and are not cleared away yet.
        seen_at: when any was heard of last.
        swept_at: when any supervisor swept last.
    """

    alive: dict[str, int]
    silent: int
    seen_at: datetime | None
    swept_at: datetime | None


def worker_summary(now: datetime) -> Crew:
    """Who is there now, by the database's clock."""
    alive = Count("pk", filter=Q(seen_at__gte=lately(now)))
    rows = Worker.objects.order_by().values_list("queue")
    found = rows.annotate(
        alive=alive, all=Count("pk"), seen=Max("seen_at"), swept=Max("swept_at")
    )
    each = list(found)
    return Crew(
        alive={name: number for name, number, *_ in each if number},
        silent=sum(every - number for _, number, every, *_ in each),
        seen_at=max((seen for *_, seen, _ in each), default=None),
        swept_at=max((swept for *_, swept in each if swept), default=None),
    )


def leases() -> dict[str, int]:
    """How much work workers hold whose leases run, by queue; to MOST of each table."""
    held: Counter[str] = Counter(dict.fromkeys(queues(), 0))
    for table in WORK:
        owned = table.model._default_manager.exclude(owner="")
        rows = owned.filter(wake_at__gt=database_now()).values_list("queue", flat=True)
        held.update(plain(name) for name in rows[:MOST])
    return dict(held)


def redis_answers() -> bool:
    """Whether the Redis of every queue is in reach and answers in time."""
    return all(answers(name) for name in queues())
