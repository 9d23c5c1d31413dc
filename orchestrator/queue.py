"""The doorbell: jobs in Redis that wake workers. The database is the queue.

A bell says "there is ready work on this queue". It carries no work, and may be lost, doubled or late: the sweep finds
work without a bell. While Redis is away, a process skips bells for a moment, so that commits stay fast. No other module
outside `workers` imports django-rq's queues.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from uuid import uuid4

import django_rq
from django.db import transaction
from redis import Redis
from redis.backoff import NoBackoff
from redis.client import Pipeline, PubSub
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue, Worker
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.utils import utcformat
from rq.worker_registration import REDIS_WORKER_KEYS, WORKERS_BY_QUEUE_KEY

from orchestrator.configuration.conf import conf
from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE

log = logging.getLogger(__name__)

ANSWER = "orchestrator.jobs.answer"
BELL = "procession-bell-"
"""The prefix of a bell's job id; a worker reads nothing else of the job."""
SILENCE_SECONDS = 1.0
BELL_SECONDS = 600
LISTEN_SECONDS = 1.0
"""How long `listen_for_bells` waits for a bell before it yields False."""
ANSWER_SECONDS = 1
"""How long Redis may take to answer: a connection can fall silent without an error."""

CALLS = ":calls"
"""The suffix of a calls queue: its work waits outside, and a worker has many of its calls in flight at once."""

LONGEST_QUEUE = 50 - len(CALLS)
"""The longest name of a queue, in characters: with that suffix it fits its column."""

_silent = {"until": 0.0}
_answering: set[str] = set()


def calls_queue(queue: str) -> str:
    """Return the calls queue beside a queue."""
    return queue if holds_calls(queue) else queue + CALLS


def holds_calls(queue: str) -> bool:
    """Return whether a queue is a calls queue."""
    return queue.endswith(CALLS)


def base_queue(queue: str) -> str:
    """Return the queue beside a calls queue; any other queue as it is."""
    return queue.removesuffix(CALLS)


def rq_name(queue: str) -> str:
    """Return RQ's name of a queue: RQ's own `default` belongs to the project."""
    return conf().DEFAULT_QUEUE if queue == DEFAULT_QUEUE else queue


def queue_of_rq_name(name: str) -> str:
    """Return the queue that has this name in RQ."""
    return DEFAULT_QUEUE if name == conf().DEFAULT_QUEUE else name


def is_bell(job_id: str) -> bool:
    """Return whether a job is a bell, by its id; a forged bell only wakes a worker."""
    return job_id.startswith(BELL)


def wake_queue_after_commit(queue: str, *, others: bool = False) -> None:
    """Wake a queue once the current transaction, if any, has committed."""
    transaction.on_commit(lambda: wake_queue(queue, others=others), robust=True)


@contextmanager
def suppress_wakes(queue: str) -> Iterator[None]:
    """Suppress bells for a queue while this worker runs its work."""
    _answering.add(queue)
    try:
        yield
    finally:
        _answering.discard(queue)


@contextmanager
def suppress_all_wakes() -> Iterator[None]:
    """Suppress all bells, for a test that runs ready work itself and needs no Redis."""
    before = _silent["until"]
    _silent["until"] = float("inf")
    try:
        yield
    finally:
        _silent["until"] = before


def wake_queue(queue: str, *, others: bool = False) -> None:
    """Wake one worker of a queue, unless as many bells are out as workers listen.

    Args:
        queue: its name.
        others: also while this worker runs the queue's work itself.
    """
    if time.monotonic() < _silent["until"] or (queue in _answering and not others):
        return
    try:
        if holds_calls(queue):
            # Every worker of calls hears it; each claims as many calls as it has room for.
            _bell(base_queue(queue), os.getpid()).connection.publish(_topic(queue), "")
        else:
            _ring_script(queue, os.getpid())()
    except (RedisError, OSError) as error:
        _skip_redis()
        log.warning("the doorbell is out of reach, workers poll: %s", error)


RING = """
if redis.call('LLEN', KEYS[1]) >= math.max(redis.call('SCARD', KEYS[2]), 1) then return 0 end
redis.call('SADD', KEYS[3], KEYS[1])
redis.call('HSET', KEYS[4], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[4], ARGV[2])
return redis.call('RPUSH', KEYS[1], ARGV[1])
"""
"""Enqueues a job as RQ does, unless the queue has enough; in one round trip, because each event and start rings."""


@cache
def _ring_script(queue: str, pid: int) -> Callable[[], object]:
    """Return a function that rings a queue's bell: the same job under a new id each time."""
    bell = _bell(queue, pid)
    ring_once = bell.connection.register_script(RING)
    job = bell.create_job(
        ANSWER,
        args=(queue,),
        result_ttl=0,
        failure_ttl=BELL_SECONDS,
        ttl=BELL_SECONDS,
        timeout=-1,
        status=JobStatus.QUEUED,
    )
    same = job.to_dict(include_meta=False)
    places = bell.key, WORKERS_BY_QUEUE_KEY % bell.name, Queue.redis_queues_keys

    def ring() -> object:
        job_id, now = f"{BELL}{uuid4().hex}", utcformat(datetime.now(UTC))
        said = {**same, "created_at": now, "enqueued_at": now}
        fields = [part for field in said.items() for part in field]
        return ring_once(
            [*places, Job.key_for(job_id)], [job_id, BELL_SECONDS, *fields]
        )

    return ring


def listen_for_bells(queue: str) -> Iterator[bool]:
    """Yield True for each bell of a calls queue, and False after a second without one, endlessly.

    The subscription yields True too: bells may have come before it.

    Raises:
        RedisError, OSError: Redis is out of reach, or has not answered within that second.
    """
    listening = django_rq.get_queue(rq_name(base_queue(queue))).connection
    set_timeouts(listening, LISTEN_SECONDS + ANSWER_SECONDS)
    pubsub: Callable[..., PubSub] = listening.pubsub  # redis-py's is not typed
    with pubsub() as bells:
        bells.subscribe(_topic(queue))
        asked = False
        while True:
            said = bells.get_message(timeout=LISTEN_SECONDS)
            if said is not None:
                asked = False
                yield said["type"] in ("message", "subscribe")
                continue
            if asked:  # a listener sees no error on a silent connection
                raise ConnectionLost("Redis does not answer the listener for bells")
            bells.ping()
            asked = True
            yield False


def _topic(queue: str) -> str:
    return f"procession:bell:{queue}"


def _skip_redis() -> None:
    """Make this process skip Redis for a moment."""
    _silent["until"] = max(_silent["until"], time.monotonic() + SILENCE_SECONDS)


def redis_responds(queue: str) -> bool:
    """Return whether Redis is in reach and answers in time."""
    try:
        return bool(_bell(queue, os.getpid()).connection.ping())
    except (RedisError, OSError) as error:
        _skip_redis()
        log.warning("Redis does not answer, workers poll the database: %s", error)
        return False


def bell_count(queue: str) -> int | None:
    """Return how many bells are out; None while Redis is out of reach."""
    try:
        return _bell(queue, os.getpid()).count
    except (RedisError, OSError):
        return None


def add_workers(queue: str, names: Collection[str]) -> None:
    """Register workers of a queue in Redis, as each does itself when it begins."""
    with _registered(queue) as (pipe, places):
        for place in places:
            if names:
                pipe.sadd(place, *map(_key, names))


def remove_workers(queue: str, names: Collection[str]) -> None:
    """Unregister lost workers of a queue."""
    with _registered(queue) as (pipe, places):
        for place in places:
            pipe.srem(place, *map(_key, names))
        pipe.delete(*map(_key, names))


def silent_workers(queue: str) -> set[str]:
    """Return the names of a queue's workers without a heartbeat in Redis for some minutes."""
    found: set[str] = set()
    with _registered(queue) as (pipe, (_, place)):
        pipe.smembers(place)
        [keys] = pipe.execute()
        for key in keys:
            pipe.exists(key)
        for key, there in zip(keys, pipe.execute(), strict=True):
            if not there:
                found.add(key.decode().removeprefix(_key("")))
    return found


@contextmanager
def _registered(queue: str) -> Iterator[tuple[Pipeline, tuple[str, str]]]:
    """Yield a pipeline and the two sets in Redis that list a queue's workers; send the pipeline at the end."""
    bell = _bell(queue, os.getpid())
    try:
        with bell.connection.pipeline(transaction=False) as pipe:
            yield pipe, (REDIS_WORKER_KEYS, WORKERS_BY_QUEUE_KEY % bell.name)
            pipe.execute()
    except (RedisError, OSError) as error:
        log.info("the queue's workers are not counted: %s", error)


def _key(worker: str) -> str:
    return f"{Worker.redis_worker_namespace_prefix}{worker}"


@cache
def _bell(queue: str, pid: int) -> Queue:
    """Return a queue object with one connection per process: `pid` keeps a forked child from sharing its parent's."""
    found = connect_queue(queue)
    set_timeouts(found.connection, ANSWER_SECONDS)
    return found


def connect_queue(queue: str) -> Queue:
    """Return RQ's queue for the bells of a queue, with a connection of its own."""
    # commit_mode="auto": callers have waited for the commit already; django-rq's own waiting is not robust.
    found: Queue = django_rq.get_queue(
        rq_name(queue), commit_mode="auto", serializer=JSONSerializer
    )
    return found


def set_timeouts(connection: Redis, seconds: float) -> None:
    """Limit how long a connection waits for an answer; it reconnects once when it was lost."""
    times = {"socket_timeout": seconds, "socket_connect_timeout": ANSWER_SECONDS}
    connection.connection_pool.connection_kwargs.update(times)
    connection.set_retry(Retry(NoBackoff(), 1, (ConnectionLost,)))
