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

from orchestrator.conf import conf
from orchestrator.queue import (
    ANSWER_SECONDS,
    answers,
    connected,
    is_bell,
    limit_waiting,
    of_rq,
)
from orchestrator.workers.current import Current, become, current

log = logging.getLogger(__name__)

POLLING_SECONDS = 2.0
"""How long a worker polls before it tries Redis again."""
LISTEN_SECONDS = 2
"""How long a worker listens for a bell before it listens anew: a connection that has fallen silent is known by that."""


class DoorbellWorker(SimpleWorker):
    """RQ's worker with what doorbells need: one allowed function, no maintenance, a stop that never cuts a commit."""

    def __init__(self, queue: Queue, name: str) -> None:
        limit_waiting(queue.connection, LISTEN_SECONDS + ANSWER_SECONDS)
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
        return False  # bells are never cleaned up, only rung again

    @property
    def dequeue_timeout(self) -> int:
        return LISTEN_SECONDS

    @property
    def connection_timeout(self) -> int:
        return LISTEN_SECONDS + ANSWER_SECONDS

    def register_birth(self) -> None:
        """Begins; what stands under its name was left by itself, when Redis was out of reach."""
        self.connection.delete(self.key)
        super().register_birth()  # type: ignore[no-untyped-call]  # RQ's

    def teardown(self) -> None:
        """Leaves when it stops; when Redis is out of reach, it could only wait."""
        if self.stopping and answers(of_rq(self.queues[0].name)):
            super().teardown()  # type: ignore[no-untyped-call]  # RQ's

    def _install_signal_handlers(self) -> None:
        """Leaves the signals to `Stopping`, which outlives this object."""

    def subscribe(self) -> None:
        """Hears none of RQ's commands: the supervisor alone stops it. The thread that would hear delays each stop."""

    def heartbeat(
        self, timeout: int | None = None, pipeline: Pipeline | None = None
    ) -> None:
        """Says that it lives together with what else it says, which it does whenever it begins to listen."""
        if pipeline is not None:
            super().heartbeat(timeout, pipeline)

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Waits for a bell; unlike RQ's own it lets a lost connection be seen, and does not read what the job says."""
        while not self.stopping:
            self._rest()
            self.listening = True
            if self.stopping:
                raise StopRequested  # asked after the loop's test and before it could be interrupted
            try:
                return self._next(timeout)
            except (TimeoutError, DequeueTimeout):
                continue
            finally:
                self.listening = False
        raise StopRequested

    def _next(self, timeout: int | None) -> tuple[Job, Queue]:
        [queue] = self.queues
        if get_version(self.connection) >= (6, 2, 0):
            found = self.queue_class.lmove(self.connection, queue.key, timeout)
        else:
            found = self.queue_class.lpop([queue.key], timeout, self.connection)
        _, job_id = found
        job = self.job_class(as_text(job_id), self.connection, self.serializer)
        return job, queue

    def _rest(self) -> None:
        with self.connection.pipeline() as pipe:
            self.set_state(WorkerStatus.IDLE, pipeline=pipe)
            self.heartbeat(pipeline=pipe)
            pipe.execute()

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Answers a bell; of what RQ does around a job, which costs more than the bell, only what its pages show."""
        if not is_bell(job.id):
            self._keep(job, queue)
            return
        with self.connection.pipeline() as pipe:
            pipe.lrem(queue.intermediate_queue_key, 1, job.id)
            pipe.delete(job.key)
            self.set_state(WorkerStatus.BUSY, pipeline=pipe)
            pipe.execute()
        try:
            current().drain(of_rq(queue.name))
        except Exception:
            log.exception("the work of %s was left to the next bell", queue.name)

    def _keep(self, job: Job, queue: Queue) -> None:
        """Puts what is not ours, as it came, among the queue's failed jobs, where its owner can requeue it."""
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
        """Stops after the present piece of work; at once when there is none."""
        self.stopping = self._stop_requested = True
        if self.listening:
            raise StopRequested


def run(queue: str, worker: Current) -> None:
    """Runs a worker in this process until it is asked to stop by SIGTERM or SIGINT."""
    become(worker)
    stopping = Stopping()
    worker.stopping = stopping
    while not stopping():
        if answers(queue):
            try:
                _answer_bells(queue, worker, stopping)
            except (RedisError, OSError) as error:
                log.warning("Redis is out of reach, polling the database: %s", error)
        _poll(queue, worker, stopping)
    connections.close_all()
    sys.exit(0)


class Stopping:
    """Whether this worker was asked to stop."""

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


def _answer_bells(queue: str, worker: Current, stopping: Stopping) -> None:
    bells = DoorbellWorker(connected(queue), worker.owner)
    stopping.bells = bells
    try:
        if not stopping():
            bells.work(logging_level="WARNING")
    except StopRequested:
        pass
    finally:
        stopping.bells = None


def _poll(queue: str, worker: Current, stopping: Stopping) -> None:
    until = time.monotonic() + POLLING_SECONDS
    while time.monotonic() < until and not stopping():
        worker.drain(queue)
        time.sleep(conf().POLL_SECONDS)
