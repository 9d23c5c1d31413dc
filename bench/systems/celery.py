"""Celery: each step sends the next one; Redis as broker, no results, nothing is kept."""

import os

from celery import Celery

from bench.steps_told import step

app = Celery("bench", broker=os.environ["REDIS_URL"])
app.conf.update(
    task_ignore_result=True,
    task_default_queue="bench-celery",
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task  # type: ignore[untyped-decorator]  # known where it is installed
def link(left: int, number: int) -> None:
    """One step."""
    step(left, number)
    if left > 1:
        link.delay(left - 1, number)


def prepare() -> None:
    """Do nothing."""


def work(processes: int) -> None:
    """Run workers until they are ended."""
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    app.worker_main(["worker", f"--concurrency={processes}", "-l", "ERROR", *quiet])


def send(chains: int, length: int, number: int) -> None:
    """Send the first steps."""
    for _ in range(chains):
        link.delay(length, number)
