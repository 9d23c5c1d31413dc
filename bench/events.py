"""Events into waiting process managers: transitions a second, and from sent to committed on an idle system."""

from __future__ import annotations

import statistics
import time
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import Max

from bench.ping import PingPong, Returned, Served
from bench.raw_rq import jobs_per_second
from bench.run import PATIENCE_SECONDS, QUEUE, running
from bench.workers import workers
from orchestrator.engine.drain import drain
from orchestrator.engine.processes import send_event, start_process
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import InboxEvent
from orchestrator.queue import ring


def measure(events: int, processes: int, games: int = 200) -> dict[str, Any]:
    """Runs the measurement and removes what it wrote.

    Args:
        events: how many events are sent to waiting processes.
        processes: how many workers, of the engine and of RQ.
        games: how many processes the events are spread over.
    """
    with running(PingPong):
        started = [
            start_process(PingPong, Served(uuid4().hex)).process_id
            for _ in range(games)
        ]
        drain(QUEUE)
        sent = _send(started, events)
        with workers(QUEUE, processes):
            moved = _moved_per_second(events, processes)
            idle = _idle_latency(started[0])
        return {
            "database": connection.vendor,
            "workers": processes,
            "events": events,
            "events_accepted_per_second": round(sent, 1),
            "transitions_per_second": round(moved, 1),
            "idle_latency_ms": {name: round(value, 1) for name, value in idle.items()},
            "rq_jobs_per_second": round(
                raw := jobs_per_second(min(events, 2000), processes), 1
            ),
            "ratio_to_rq": round(moved / raw, 2),
        }


def _send(waiting: list[UUID], events: int) -> float:
    """Sends the events round robin, before any worker runs; how many were accepted a second."""
    begun = time.perf_counter()
    for number in range(events):
        send_event(
            Returned(),
            id=uuid4().hex,
            source="bench",
            process_id=waiting[number % len(waiting)],
        )
    return events / (time.perf_counter() - begun)


def _moved_per_second(events: int, processes: int) -> float:
    """From the first bell to the last commit, by the database's clock."""
    begun = database_now()
    for _ in range(processes):
        ring(QUEUE)
    until = time.monotonic() + PATIENCE_SECONDS
    sent = InboxEvent.objects.filter(source="bench", queue=QUEUE)
    while sent.filter(wake_at__isnull=False).exists():
        if time.monotonic() > until:
            raise TimeoutError(
                f"the events were not handled within {PATIENCE_SECONDS} s"
            )
        time.sleep(0.05)
    ended = sent.aggregate(at=Max("handled_at"))["at"]
    return float(events / (ended - begun).total_seconds())


def _idle_latency(process_id: UUID, rounds: int = 60) -> dict[str, float]:
    """Milliseconds from an event's receipt to its handling while nothing else runs."""
    taken = []
    for _ in range(rounds):
        receipt = send_event(
            Returned(), id=uuid4().hex, source="bench-idle", process_id=process_id
        )
        row = InboxEvent.objects.filter(pk=receipt.number)
        until = time.monotonic() + PATIENCE_SECONDS
        while (handled := row.values_list("received_at", "handled_at").get())[
            1
        ] is None:
            if time.monotonic() > until:
                raise TimeoutError("an event was not handled")
            time.sleep(0.002)
        taken.append((handled[1] - handled[0]).total_seconds() * 1000)
        time.sleep(0.01)
    cuts = statistics.quantiles(taken, n=20)
    return {"p50": statistics.median(taken), "p95": cuts[18]}
