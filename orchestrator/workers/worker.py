"""One worker process: an RQ worker without a fork per job that answers doorbells, and polls while Redis is away."""

from __future__ import annotations

import logging
import signal
import sys
import time
from typing import Any

from django.db import connections
from redis.client import Pipeline
from redis.exceptions import RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import DequeueTimeout, StopRequested
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.utils import as_text, get_version
from rq.worker import WorkerStatus

from orchestrator.configuration.conf import conf
from orchestrator.engine.storage.application_code.descriptors import watch_descriptors
from orchestrator.queue import (
    ANSWER_SECONDS,
    connect_queue,
    is_bell,
    queue_of_rq_name,
    redis_responds,
    set_timeouts,
)
from orchestrator.workers.current_worker import CurrentWorker, current, set_current

log = logging.getLogger(__name__)

POLLING_SECONDS = 2.0
"""How long a worker polls before it tries Redis again."""
LISTEN_SECONDS = 2
"""How long a worker waits for a bell before it asks again: that shows a connection that has fallen silent."""


class DoorbellWorker(SimpleWorker):
    """RQ's worker for doorbells: one allowed function, no maintenance, a stop that never interrupts a commit."""

    def __init__(self, queue: Queue, name: str) -> None:
        set_timeouts(queue.connection, LISTEN_SECONDS + ANSWER_SECONDS)
        super().__init__(
            [queue],
            name=name,
            connection=queue.connection,
            serializer=JSONSerializer,
            log_job_description=False,
        )
        self.listening = False
        self.stopping = False

    @property
    def should_run_maintenance_tasks(self) -> bool:
        return False  # bells are never cleaned up, only sent again

    @property
    def dequeue_timeout(self) -> int:
        return LISTEN_SECONDS

    @property
    def connection_timeout(self) -> int:
        return LISTEN_SECONDS + ANSWER_SECONDS

    def register_birth(self) -> None:
        """Register the worker; an entry of its name is its own, from before Redis was out of reach."""
        self.connection.delete(self.key)
        super().register_birth()  # type: ignore[no-untyped-call]  # RQ's

    def teardown(self) -> None:
        """Unregister the worker when it stops; without Redis that could only wait."""
        if self.stopping and redis_responds(queue_of_rq_name(self.queues[0].name)):
            super().teardown()  # type: ignore[no-untyped-call]  # RQ's

    def _install_signal_handlers(self) -> None:
        """Leave the signals to `Stopping`, which outlives this object."""

    def subscribe(self) -> None:
        """Do not listen for RQ's commands: only the supervisor stops a worker, and the thread would delay each stop."""

    def heartbeat(
        self, timeout: int | None = None, pipeline: Pipeline | None = None
    ) -> None:
        """Send a heartbeat only along with other commands, as each wait for a bell begins with."""
        if pipeline is not None:
            super().heartbeat(timeout, pipeline)

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Wait for a bell; unlike RQ's method, raise for a lost connection, and do not read the job."""
        while not self.stopping:
            self._mark_idle()
            self.listening = True
            if self.stopping:
                raise StopRequested  # asked after the loop's test and before it could be interrupted
            try:
                return self._next_bell(timeout)
            except (TimeoutError, DequeueTimeout):
                continue
            finally:
                self.listening = False
        raise StopRequested

    def _next_bell(self, timeout: int | None) -> tuple[Job, Queue]:
        [queue] = self.queues
        if get_version(self.connection) >= (6, 2, 0):
            found = self.queue_class.lmove(self.connection, queue.key, timeout)
        else:
            found = self.queue_class.lpop([queue.key], timeout, self.connection)
        _, job_id = found
        job = self.job_class(as_text(job_id), self.connection, self.serializer)
        return job, queue

    def _mark_idle(self) -> None:
        with self.connection.pipeline() as pipe:
            self.set_state(WorkerStatus.IDLE, pipeline=pipe)
            self.heartbeat(pipeline=pipe)
            pipe.execute()

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Answer a bell. Of RQ's work around a job, which costs more than the bell, do only what its pages show."""
        if not is_bell(job.id):
            self._refuse_job(job, queue)
            return
        with self.connection.pipeline() as pipe:
            pipe.lrem(queue.intermediate_queue_key, 1, job.id)
            pipe.delete(job.key)
            self.set_state(WorkerStatus.BUSY, pipeline=pipe)
            pipe.execute()
        try:
            current().drain(queue_of_rq_name(queue.name))
        except Exception:
            log.exception("the work of %s was left to the next bell", queue.name)

    def _refuse_job(self, job: Job, queue: Queue) -> None:
        """Move a job of others, unchanged, to the queue's failed jobs, where its owner can requeue it."""
        refusal = "refused a job that is not a doorbell"
        known = self.connection.exists(job.key)
        with self.connection.pipeline() as pipe:
            pipe.lrem(queue.intermediate_queue_key, 1, job.id)
            if known:
                pipe.hset(job.key, "status", JobStatus.FAILED)
                pipe.hset(job.key, "exc_info", refusal)
                pipe.persist(job.key)
                pipe.zadd(queue.failed_job_registry.key, {job.id: -1})
            pipe.execute()
        if known:
            log.error("%s: %s, kept among the queue's failed jobs", refusal, job.id)

    def request_stop(self, signum: int, frame: Any) -> None:
        """Stop after the present piece of work; at once without any."""
        self.stopping = self._stop_requested = True
        if self.listening:
            raise StopRequested


def run_worker(queue: str, worker: CurrentWorker) -> None:
    """Run a worker in this process until SIGTERM or SIGINT."""
    set_current(worker)
    watch_descriptors()
    stopping = Stopping()
    worker.stopping = stopping
    while not stopping():
        if redis_responds(queue):
            try:
                _answer_bells(queue, worker, stopping)
            except (RedisError, OSError) as error:
                log.warning("Redis is out of reach, polling the database: %s", error)
        _poll(queue, worker, stopping)
    connections.close_all()
    sys.exit(0)


class Stopping:
    """Whether this worker was asked to stop; it handles the signals."""

    def __init__(self) -> None:
        self.bells: DoorbellWorker | None = None
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def __call__(self) -> bool:
        return self.asked

    def _ask(self, signum: int, frame: Any) -> None:
        self.asked = True
        if self.bells is not None:
            self.bells.request_stop(signum, frame)


def _answer_bells(queue: str, worker: CurrentWorker, stopping: Stopping) -> None:
    bells = DoorbellWorker(connect_queue(queue), worker.owner)
    stopping.bells = bells
    try:
        if not stopping():
            bells.work(logging_level="WARNING")
    except StopRequested:
        pass
    finally:
        stopping.bells = None


def _poll(queue: str, worker: CurrentWorker, stopping: Stopping) -> None:
    until = time.monotonic() + POLLING_SECONDS
    while time.monotonic() < until and not stopping():
        worker.drain(queue)
        time.sleep(conf().POLL_SECONDS)
