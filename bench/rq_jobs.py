"""The jobs that RQ runs beside the engine: the same shapes of work, without a checkpoint and without a database."""

from __future__ import annotations

import time
from functools import cache

import django_rq
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from bench.run import RAW_QUEUE

NO_OP = "bench.rq_jobs.no_op"
LINK = "bench.rq_jobs.link"
LAST = "bench.rq_jobs.last"
SPREAD = "bench.rq_jobs.spread"
SPREAD_PLAINLY = "bench.rq_jobs.spread_plainly"
ELEMENT = "bench.rq_jobs.element"
LEFT = "bench-rq-left:"
DONE = "bench-rq-done"


def no_op() -> None:
    """Do nothing."""


def last() -> None:
    """End a chain or fan-out, and note the time."""
    queue().connection.rpush(DONE, str(time.time()))


def link(left: int) -> None:
    """Run one step of a chain: enqueue the next one; the last step says that the chain is done."""
    if left > 1:
        queue().enqueue_call(LINK, args=(left - 1,), result_ttl=0)
    else:
        last()


def chain_plainly(length: int) -> None:
    """Enqueue a chain as RQ's manual has it: each job depends on the one before."""
    before = None
    for number in range(length):
        name = NO_OP if number < length - 1 else LAST
        before = queue().enqueue(name, depends_on=before)


def spread(number: str, width: int) -> None:
    """Run the first step of a fan-out: enqueue its elements at once, and count them down."""
    queue().connection.set(f"{LEFT}{number}", width)
    jobs = [
        Queue.prepare_data(ELEMENT, args=(number,), result_ttl=0) for _ in range(width)
    ]
    queue().enqueue_many(jobs)


def element(number: str) -> None:
    """Run one element of a fan-out; the last one enqueues the join."""
    left = f"{LEFT}{number}"
    if queue().connection.decr(left) == 0:
        queue().connection.delete(left)
        queue().enqueue_call(LAST, result_ttl=0)


def spread_plainly(width: int) -> None:
    """Run the first step of a fan-out as RQ's manual has it: the join depends on the elements."""
    elements = [queue().enqueue(NO_OP) for _ in range(width)]
    queue().enqueue(LAST, depends_on=elements)


@cache
def queue() -> Queue:
    found: Queue = django_rq.get_queue(RAW_QUEUE, commit_mode="auto")
    return found


def forget() -> None:
    """Remove all jobs and RQ's records of them: it keeps those of `depends_on` for minutes, or for ever."""
    here = queue()
    registries = (
        here.started_job_registry,
        here.finished_job_registry,
        here.failed_job_registry,
        here.deferred_job_registry,
    )
    noted = {name for one in registries for name in one.get_job_ids(cleanup=False)}
    keys = [f"rq:execution:{name}" for name in noted]
    for id in {name.partition(":")[0] for name in noted} | {*here.get_job_ids()}:
        keys += [f"rq:job:{id}", f"rq:job:{id}:dependents", f"rq:results:{id}"]
        keys += [f"rq:job::{id}:dependencies", f"rq:executions:{id}"]
    keys += [DONE, here.key, f"{here.key}:intermediate"]
    here.connection.delete(*keys, *(one.key for one in registries))


def work() -> None:
    """Run jobs in this process until it is ended, with as little of RQ's bookkeeping as its settings allow."""
    queue.cache_clear()  # a connection is not shared with the parent
    worker = SimpleWorker(
        [queue()],
        connection=queue().connection,
        serializer=JSONSerializer,
        log_job_description=False,
    )
    worker.log_result_lifespan = False
    worker.work(logging_level="WARNING")
