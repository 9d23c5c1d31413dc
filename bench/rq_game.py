"""Games of RQ alone. Its workers are warm, and stopped while the jobs are enqueued: neither start is counted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench import checks, rq_jobs
from bench.game import Figures, Game, Size
from bench.idle import idle_figures
from bench.run import add_queues
from bench.workers import Team, end_after, fork

START = (
    "RQ's start counts from the moment its workers go on: enqueuing the first jobs is not counted, and neither is "
    "`start_process` or `send_event`. Of one at a time everything counts, from just before the call."
)


class RqGame(Game):
    """`count` chains or fan-outs in RQ, with equally many jobs each."""

    def __init__(
        self, size: Size, name: str, jobs: int, enqueue: Callable[[int], object]
    ) -> None:
        super().__init__(size)
        self.name = name
        self.jobs = jobs
        self.enqueue = enqueue
        """Enqueues one of them, whose number it is given; its last job says that it is done."""
        self.team = Team([])

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        add_queues()
        rq_jobs.forget()
        forked = [fork(rq_jobs.work) for _ in range(self.size.processes)]
        self.team = Team(forked)
        try:
            with end_after(forked):
                for number in range(4 * self.size.processes):
                    self.enqueue(number)
                self._wait(4 * self.size.processes)
                rq_jobs.forget()
                yield
        finally:
            rq_jobs.forget()

    def prepare(self) -> None:
        self._signal(signal.SIGSTOP)
        try:
            for number in range(self.size.count):
                self.enqueue(number)
        except BaseException:
            self._signal(signal.SIGCONT)  # one that is stopped cannot be ended
            raise

    def run(self) -> Figures:
        before, begun = self.team.used(), time.time()
        self._signal(signal.SIGCONT)
        self._wait(self.size.count)
        units = self.size.count * self.jobs
        used = self.team.figures(before, units)
        times = rq_jobs.queue().connection.lrange(rq_jobs.DONE, 0, -1)
        ended = max(float(at) for at in times)
        return {"per_second": units / (ended - begun), **used}

    def check(self) -> None:
        queue = rq_jobs.queue()
        left = {
            "queued": queue.connection.llen(queue.key),
            "failed": queue.failed_job_registry.get_job_count(cleanup=False),
            "done": queue.connection.llen(rq_jobs.DONE),
        }
        expected = {"queued": 0, "failed": 0, "done": self.size.count}
        checks.check_equal(f"{self.name}: jobs", left, expected)

    def _wait(self, number: int) -> None:
        redis = rq_jobs.queue().connection
        self.wait(lambda: redis.llen(rq_jobs.DONE) >= number, "the end of all jobs")

    def _signal(self, number: int) -> None:
        for pid in self.team.pids:
            os.kill(pid, number)


class RqOneByOne(RqGame):
    """One chain or fan-out at a time on idle workers."""

    unit = "run"

    def prepare(self) -> None:
        """Do nothing: `run` enqueues the jobs."""

    def run(self) -> Figures:
        return idle_figures(self.size.count, self._one)

    def _one(self) -> tuple[float, float]:
        self.enqueue(0)
        called = time.time()
        patience = max(1, int(self.size.patience))
        redis: Any = rq_jobs.queue().connection
        found = redis.blpop([rq_jobs.DONE], timeout=patience)
        checks.check_equal(f"{self.name}: ends within {patience} s", bool(found), True)
        return called, float(found[1])

    def check(self) -> None:
        """Do nothing: `run` has waited for each."""


def chains(size: Size, length: int) -> list[RqGame]:
    """Return RQ's two ways: each job enqueues the next, and `depends_on`; which one is quicker differs by machine."""
    return [
        RqGame(size, "RQ, enqueues the next", length, lambda _: _chain(length)),
        RqGame(size, "RQ, depends_on", length, lambda _: rq_jobs.chain_plainly(length)),
    ]


def fanouts(size: Size, width: int) -> list[RqGame]:
    """Return RQ's two ways: elements that count down, and `depends_on`."""
    return [
        RqGame(size, "RQ, countdown", width + 2, lambda n: _spread(n, width)),
        RqGame(size, "RQ, depends_on", width + 2, lambda _: _spread_plainly(width)),
    ]


def one_chain(size: Size, length: int) -> RqGame:
    """Return one chain at a time, in which each job enqueues the next."""
    return RqOneByOne(size, "RQ, one chain at a time", length, lambda _: _chain(length))


def one_fanout(size: Size, width: int) -> RqGame:
    """Return one fan-out at a time, whose elements count down."""
    return RqOneByOne(
        size, "RQ, one fan-out at a time", width + 2, lambda n: _spread(n, width)
    )


def no_ops(size: Size) -> RqGame:
    """Return jobs that only count down."""
    return RqGame(size, "RQ, single jobs", 1, lambda _: _call(rq_jobs.LAST))


def _call(name: str, *args: object) -> None:
    rq_jobs.queue().enqueue_call(name, args=args, result_ttl=0)


def _chain(length: int) -> None:
    _call(rq_jobs.LINK, length)


def _spread(number: int, width: int) -> None:
    _call(rq_jobs.SPREAD, str(number), width)


def _spread_plainly(width: int) -> None:
    _call(rq_jobs.SPREAD_PLAINLY, width)
