"""Workflows of steps that do nothing: steps a second, and from start to end on an idle system, beside raw RQ."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.db.models import Max

from bench import raw_rq
from bench.chain import LENGTH, Chain
from bench.run import PATIENCE_SECONDS, QUEUE, running
from bench.shapes import WIDTH, FanOut
from bench.workers import workers
from orchestrator.definition import Workflow
from orchestrator.engine.processes import start_process
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import ProcessInstance
from orchestrator.queue import ring

ROUNDS = 30


def chain(chains: int, processes: int) -> dict[str, Any]:
    """Runs so many chains, with a checkpoint committed for each step, and the same in raw RQ without any."""
    return _measure(
        Chain,
        chains,
        LENGTH,
        processes,
        lambda: raw_rq.chain_steps_per_second(chains, LENGTH, processes),
    )


def fanout(fanouts: int, processes: int) -> dict[str, Any]:
    """The same for a list of 50, a step for each element, and a join."""
    return _measure(
        FanOut,
        fanouts,
        WIDTH + 2,
        processes,
        lambda: raw_rq.fanout_steps_per_second(fanouts, WIDTH, processes),
    )


def _measure(
    shape: type[Workflow],
    count: int,
    length: int,
    processes: int,
    by_rq: Callable[[], float],
) -> dict[str, Any]:
    with running(shape):
        started = _started_per_second(shape, count)
        with workers(QUEUE, processes):
            steps = _steps_per_second(shape, count * length, processes)
            idle = _idle_latency(shape)
        raw = by_rq()
        rq_idle = raw_rq.chain_latency(LENGTH, processes, ROUNDS)
    return {
        "database": connection.vendor,
        "workers": processes,
        "processes": count,
        "steps": count * length,
        "started_per_second": round(started, 1),
        "steps_per_second": round(steps, 1),
        "idle_latency_ms": {name: round(value, 1) for name, value in idle.items()},
        "rq_steps_per_second": round(raw, 1),
        "rq_chain_idle_latency_ms": round(rq_idle, 1),
        "ratio_to_rq": round(steps / raw, 2),
    }


def _started_per_second(shape: type[Workflow], count: int) -> float:
    """Starts them before any worker runs."""
    begun = time.perf_counter()
    for _ in range(count):
        start_process(shape, shape.Input())
    return count / (time.perf_counter() - begun)


def _steps_per_second(shape: type[Workflow], steps: int, processes: int) -> float:
    """From the first bell to the last commit, by the database's clock."""
    begun = database_now()
    for _ in range(processes):
        ring(QUEUE)
    _wait(shape)
    ended = ProcessInstance.objects.filter(name=shape.name)
    last = ended.aggregate(at=Max("finished_at"))["at"]
    return float(steps / (last - begun).total_seconds())


def _idle_latency(shape: type[Workflow]) -> dict[str, float]:
    """Milliseconds from the start of one process to its end while nothing else runs."""
    taken = []
    for _ in range(ROUNDS):
        receipt = start_process(shape, shape.Input())
        _wait(shape)
        row = ProcessInstance.objects.filter(pk=str(receipt.process_id)).first()
        if row is not None and row.finished_at is not None:
            taken.append((row.finished_at - row.started_at).total_seconds() * 1000)
        time.sleep(0.02)
    cuts = statistics.quantiles(taken, n=20)
    return {"p50": statistics.median(taken), "p95": cuts[18]}


def _wait(shape: type[Workflow]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while ProcessInstance.objects.live().filter(name=shape.name).exists():
        if time.monotonic() > until:
            raise TimeoutError(
                f"the processes did not end within {PATIENCE_SECONDS} seconds"
            )
        time.sleep(0.01)
