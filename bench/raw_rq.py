"""What RQ alone does through its SimpleWorker, without a database: the same shapes of work, without a checkpoint."""

from __future__ import annotations

import statistics
import time
from functools import cache

import django_rq
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from bench.run import PATIENCE_SECONDS, RAW_QUEUE
from bench.workers import fork, running, wait

NO_OP = "bench.raw_rq.no_op"
LINK = "bench.raw_rq.link"
SPREAD = "bench.raw_rq.spread"
ELEMENT = "bench.raw_rq.element"
LEFT = "bench-rq-left:"
DONE = "bench-rq-done"


def no_op() -> None:
    """Nothing."""


def link(left: int) -> None:
    """One step of a chain: enqueues the next one; the last says that the chain is done."""
    if left > 1:
        _queue().enqueue_call(LINK, args=(left - 1,), result_ttl=0)
    else:
        _queue().connection.rpush(DONE, str(time.time()))


def spread(number: int, width: int) -> None:
    """The first step of a fan-out: enqueues its elements and counts them down."""
    _queue().connection.set(f"{LEFT}{number}", width)
    for _ in range(width):
        _queue().enqueue_call(ELEMENT, args=(number,), result_ttl=0)


def element(number: int) -> None:
    """One element of a fan-out; the last one enqueues the join."""
    if _queue().connection.decr(f"{LEFT}{number}") == 0:
        _queue().enqueue_call(NO_OP, result_ttl=0)


def jobs_per_second(jobs: int, processes: int) -> float:
    """No-op jobs a second; the workers' start-up is not counted."""
    _empty()
    for _ in range(jobs):
        _queue().enqueue_call(NO_OP, result_ttl=0)
    return jobs / _burst(processes)


def chain_steps_per_second(chains: int, length: int, processes: int) -> float:
    """Steps a second of chains whose jobs enqueue the next one."""
    _empty()
    for _ in range(chains):
        _queue().enqueue_call(LINK, args=(length,), result_ttl=0)
    return chains * length / _burst(processes)


def fanout_steps_per_second(fanouts: int, width: int, processes: int) -> float:
    """Steps a second of fan-outs with a countdown and a join."""
    _empty()
    for number in range(fanouts):
        _queue().enqueue_call(SPREAD, args=(number, width), result_ttl=0)
    return fanouts * (width + 2) / _burst(processes)


def chain_latency(length: int, processes: int, rounds: int) -> float:
    """Median milliseconds from enqueuing the first job of one chain to its end, on idle workers."""
    _empty()
    taken = []
    with running([fork(lambda: _work(burst=False)) for _ in range(processes)]):
        time.sleep(0.5)
        for _ in range(rounds):
            begun = time.time()
            _queue().enqueue_call(LINK, args=(length,), result_ttl=0)
            found = _queue().connection.blpop([DONE], timeout=PATIENCE_SECONDS)
            if found is not None:
                taken.append((float(found[1]) - begun) * 1000)
            time.sleep(0.02)
    return statistics.median(taken[3:])


def _burst(processes: int) -> float:
    """Seconds that so many workers need to empty the queue."""
    begun = time.perf_counter()
    wait([fork(lambda: _work(burst=True)) for _ in range(processes)])
    return time.perf_counter() - begun


def _empty() -> None:
    _queue().empty()  # type: ignore[no-untyped-call]
    _queue().connection.delete(DONE)


@cache
def _queue() -> Queue:
    found: Queue = django_rq.get_queue(RAW_QUEUE)
    return found


def _work(*, burst: bool) -> None:
    _queue.cache_clear()  # a connection is not shared with the parent
    worker = SimpleWorker(
        [_queue()],
        connection=_queue().connection,
        serializer=JSONSerializer,
        log_job_description=False,
    )
    worker.log_result_lifespan = False
    worker.work(burst=burst, logging_level="WARNING")
