"""The doorbell. The only importer of django-rq's queues; the database is the queue and the truth.

A bell says "there is ready work on this queue". It carries no work, may be lost, doubled or late, and a missing one is
made good by the sweep. While Redis is away ringing is skipped for a moment instead of slowing every commit down.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import django_rq
from django.db import transaction
from redis.exceptions import RedisError
from rq import Queue
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

log = logging.getLogger(__name__)

ANSWER = "orchestrator.jobs.answer"
SILENCE_SECONDS = 1.0
BELL_SECONDS = 600

_silent = {"until": 0.0}
_answering: set[str] = set()


def ring_after_commit(queue: str, *, others: bool = False) -> None:
    """Rings once the current transaction, if any, has committed."""
    transaction.on_commit(lambda: ring(queue, others=others), robust=True)


@contextmanager
def answering(queue: str) -> Iterator[None]:
    """While this worker empties a queue it need not be told of more work on it."""
    _answering.add(queue)
    try:
        yield
    finally:
        _answering.discard(queue)


@contextmanager
def silenced() -> Iterator[None]:
    """Nobody rings meanwhile: a test runs what is ready itself, and needs no Redis."""
    before = _silent["until"]
    _silent["until"] = float("inf")
    try:
        yield
    finally:
        _silent["until"] = before


def ring(queue: str, *, others: bool = False) -> None:
    """Wakes one worker of the queue, unless as many bells are out as there are workers to answer.

    Args:
        queue: whose workers.
        others: ring even while this worker itself is at the queue.
    """
    if time.monotonic() < _silent["until"] or (queue in _answering and not others):
        return
    try:
        bell = _bell(queue, os.getpid())
        with bell.connection.pipeline(transaction=False) as pipe:
            pipe.llen(bell.key)
            pipe.scard(WORKERS_BY_QUEUE_KEY % queue)
            out, workers = pipe.execute()
        if out < max(workers, 1):
            bell.enqueue_call(
                ANSWER,
                args=(queue,),
                result_ttl=0,
                failure_ttl=BELL_SECONDS,
                ttl=BELL_SECONDS,
                timeout=-1,
            )
    except (RedisError, OSError) as error:
        _silent["until"] = time.monotonic() + SILENCE_SECONDS
        log.warning("the doorbell is out of reach, workers poll: %s", error)


def depth(queue: str) -> int | None:
    """How many bells are out, or None while Redis is out of reach."""
    try:
        return _bell(queue, os.getpid()).count
    except (RedisError, OSError):
        return None


@cache
def _bell(queue: str, pid: int) -> Queue:
    """One queue object, and so one connection, per process; `pid` keeps a forked child from sharing its parent's."""
    # Who rings has waited for the commit already; django-rq's own waiting is not robust.
    found: Queue = django_rq.get_queue(queue, commit_mode="auto")
    return found
