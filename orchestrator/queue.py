"""The doorbell. The only importer of django-rq's queues; the database is the queue and the truth.

A bell says "there is ready work on this queue". It carries no work, may be lost, doubled or late, and a missing one is
made good by the sweep. While Redis is away ringing is skipped for a moment instead of slowing every commit down.
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

from orchestrator.conf import conf
from orchestrator.definition.process_definition import DEFAULT_QUEUE

log = logging.getLogger(__name__)

ANSWER = "orchestrator.jobs.answer"
BELL = "procession-bell-"
"""What the id of a bell's job begins with: what it says need not be read."""
SILENCE_SECONDS = 1.0
BELL_SECONDS = 600
LISTEN_SECONDS = 1.0
"""How long who listens for a bell of calls waits before looking around."""
ANSWER_SECONDS = 1
"""How long Redis may take to answer. A connection can fall silent: nothing answers, and nobody is told."""

CALLS = ":calls"
"""What the name of a queue ends with whose work waits outside: a worker has many of its calls in flight at once."""

LONGEST_QUEUE = 50 - len(CALLS)
"""Characters of the longest name that a queue may have: with that ending it still fits its column."""

_silent = {"until": 0.0}
_answering: set[str] = set()


def calls_of(queue: str) -> str:
    """The queue of the work that waits outside, beside the one of that name."""
    return queue if is_of_calls(queue) else queue + CALLS


def is_of_calls(queue: str) -> bool:
    """Whether a queue's work waits outside."""
    return queue.endswith(CALLS)


def plain(queue: str) -> str:
    """The queue beside which one of calls is; of another one itself."""
    return queue.removesuffix(CALLS)


def in_rq(queue: str) -> str:
    """What RQ calls a queue: its own `default` belongs to the project."""
    return conf().DEFAULT_QUEUE if queue == DEFAULT_QUEUE else queue


def of_rq(name: str) -> str:
    """The queue that RQ calls so."""
    return DEFAULT_QUEUE if name == conf().DEFAULT_QUEUE else name


def is_bell(job_id: str) -> bool:
    """Whether a job is a bell by its id; whoever forges one only rings."""
    return job_id.startswith(BELL)


def wake_queue_after_commit(queue: str, *, others: bool = False) -> None:
    """Rings once the current transaction, if any, has committed."""
    transaction.on_commit(lambda: wake_queue(queue, others=others), robust=True)


@contextmanager
def answering(queue: str) -> Iterator[None]:
    """Suppresses bells for a queue while this worker empties it."""
    _answering.add(queue)
    try:
        yield
    finally:
        _answering.discard(queue)


@contextmanager
def silenced() -> Iterator[None]:
    """Suppresses all bells: a test runs ready work itself, and needs no Redis."""
    before = _silent["until"]
    _silent["until"] = float("inf")
    try:
        yield
    finally:
        _silent["until"] = before


def wake_queue(queue: str, *, others: bool = False) -> None:
    """Wakes one worker of the queue, unless as many bells are out as there are workers to answer.

    Args:
        queue: whose workers.
        others: wake another worker even while this worker itself is at the queue.
    """
    if time.monotonic() < _silent["until"] or (queue in _answering and not others):
        return
    try:
        if is_of_calls(queue):
            # All who have calls of it in flight are told; each takes as many as it has room for.
            _bell(plain(queue), os.getpid()).connection.publish(_channel(queue), "")
        else:
            _ringing(queue, os.getpid())()
    except (RedisError, OSError) as error:
        _is_out_of_reach()
        log.warning("the doorbell is out of reach, workers poll: %s", error)


RING = """
if redis.call('LLEN', KEYS[1]) >= math.max(redis.call('SCARD', KEYS[2]), 1) then return 0 end
redis.call('SADD', KEYS[3], KEYS[1])
redis.call('HSET', KEYS[4], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[4], ARGV[2])
return redis.call('RPUSH', KEYS[1], ARGV[1])
"""
"""Enqueues a job as RQ does, unless enough are in the queue; in one exchange, as every event and start rings."""


@cache
def _ringing(queue: str, pid: int) -> Callable[[], object]:
    """Rings a queue's bell, which is the same job under another id each time."""
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

    def once() -> object:
        job_id, now = f"{BELL}{uuid4().hex}", utcformat(datetime.now(UTC))
        said = {**same, "created_at": now, "enqueued_at": now}
        fields = [part for field in said.items() for part in field]
        return ring_once(
            [*places, Job.key_for(job_id)], [job_id, BELL_SECONDS, *fields]
        )

    return once


def heard(queue: str) -> Iterator[bool]:
    """Listens for the bells of a queue of calls, for ever: whether one was heard, or a second has passed without.

    When it begins to hear, some may have rung before.

    Raises:
        RedisError, OSError: Redis is out of reach, or has not answered within that second.
    """
    listening = django_rq.get_queue(in_rq(plain(queue))).connection
    limit_waiting(listening, LISTEN_SECONDS + ANSWER_SECONDS)
    pubsub: Callable[..., PubSub] = listening.pubsub  # redis-py's is not typed
    with pubsub() as bells:
        bells.subscribe(_channel(queue))
        asked = False
        while True:
            said = bells.get_message(timeout=LISTEN_SECONDS)
            if said is not None:
                asked = False
                yield said["type"] in ("message", "subscribe")
                continue
            if asked:  # who only listens would never know that the connection has fallen silent
                raise ConnectionLost("Redis does not answer who listens for bells")
            bells.ping()
            asked = True
            yield False


def _channel(queue: str) -> str:
    return f"procession:bell:{queue}"


def _is_out_of_reach() -> None:
    """Stops this process from waiting for Redis for a moment."""
    _silent["until"] = max(_silent["until"], time.monotonic() + SILENCE_SECONDS)


def answers(queue: str) -> bool:
    """Whether Redis is in reach and answers in time."""
    try:
        return bool(_bell(queue, os.getpid()).connection.ping())
    except (RedisError, OSError) as error:
        _is_out_of_reach()
        log.warning("Redis does not answer, workers poll the database: %s", error)
        return False


def depth(queue: str) -> int | None:
    """How many bells are out, or None while Redis is out of reach."""
    try:
        return _bell(queue, os.getpid()).count
    except (RedisError, OSError):
        return None


def add_workers(queue: str, names: Collection[str]) -> None:
    """Counts workers among those who answer a queue's bells, as each did itself when it began."""
    with _registered(queue) as (pipe, places):
        for place in places:
            if names:
                pipe.sadd(place, *map(_key, names))


def remove_workers(queue: str, names: Collection[str]) -> None:
    """Takes workers that are gone out of those who answer a queue's bells."""
    with _registered(queue) as (pipe, places):
        for place in places:
            pipe.srem(place, *map(_key, names))
        pipe.delete(*map(_key, names))


def unheard_workers(queue: str) -> set[str]:
    """The names of a queue's workers of which Redis has not heard for some minutes."""
    found: set[str] = set()
    with _registered(queue) as (pipe, (_, place)):
        pipe.smembers(place)
        [keys] = pipe.execute()
        for key in keys:
            pipe.exists(key)
        heard = zip(keys, pipe.execute(), strict=True)
        names = (
            key.decode().removeprefix(_key("")) for key, there in heard if not there
        )
        found.update(names)
    return found


@contextmanager
def _registered(queue: str) -> Iterator[tuple[Pipeline, tuple[str, str]]]:
    """Sends what is said about a queue's workers, and gives the two places where they are listed."""
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
    """One queue object, and so one connection, per process; `pid` keeps a forked child from sharing its parent's."""
    # Who rings has waited for the commit already; django-rq's own waiting is not robust.
    found = connected(queue)
    limit_waiting(found.connection, ANSWER_SECONDS)
    return found


def connected(queue: str) -> Queue:
    """RQ's queue for the bells of a queue, with a connection of its own."""
    found: Queue = django_rq.get_queue(
        in_rq(queue), commit_mode="auto", serializer=JSONSerializer
    )
    return found


def limit_waiting(connection: Redis, seconds: float) -> None:
    """Limits how long a connection waits for an answer; a lost connection is tried again once."""
    times = {"socket_timeout": seconds, "socket_connect_timeout": ANSWER_SECONDS}
    connection.connection_pool.connection_kwargs.update(times)
    connection.set_retry(Retry(NoBackoff(), 1, (ConnectionLost,)))
