"""Worker processes for a measurement, forked from the measuring one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connections

from orchestrator.workers.supervisor import supervise


@contextmanager
def workers(queue: str, count: int) -> Iterator[None]:
    """Runs so many workers of a queue while the block lasts, under a supervisor as in use."""
    with running([fork(lambda: supervise(queue, count))]):
        yield


@contextmanager
def running(pids: list[int]) -> Iterator[None]:
    """Ends these processes when the block is left."""
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        wait(pids)


def fork(work: Callable[[], object]) -> int:
    """Runs a function in a child process and ends it."""
    connections.close_all()  # never shared with a child
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    finally:
        os._exit(status)


def wait(pids: list[int]) -> None:
    for pid in pids:
        os.waitpid(pid, 0)
