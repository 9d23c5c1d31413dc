"""huey: each step enqueues the next one; Redis, no results, nothing is kept."""

import os

from huey import RedisHuey

from bench.steps_told import step

app = RedisHuey("bench-huey", url=os.environ["REDIS_URL"], results=False)


@app.task()  # type: ignore[untyped-decorator]  # known where it is installed
def link(left: int, number: int) -> None:
    """One step."""
    step(left, number)
    if left > 1:
        link(left - 1, number)


def prepare() -> None:
    """Do nothing."""


def work(processes: int) -> None:
    """Run workers until they are ended."""
    app.create_consumer(workers=processes, worker_type="process", periodic=False).run()


def send(chains: int, length: int, number: int) -> None:
    """Enqueue the first steps."""
    for _ in range(chains):
        link(length, number)
