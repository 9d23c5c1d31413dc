"""procrastinate: each step defers the next one; PostgreSQL, a row for each job with its events."""

import multiprocessing
import os

from procrastinate import App, PsycopgConnector

from bench.steps_told import step

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


@app.task(name="link")  # type: ignore[untyped-decorator]  # known where it is installed
async def link(left: int, number: int) -> None:
    """One step."""
    step(left, number)
    if left > 1:
        await link.defer_async(left=left - 1, number=number)


def prepare() -> None:
    """Make its tables."""
    with app.open():
        app.schema_manager.apply_schema()


def work(processes: int) -> None:
    """Run workers until they are ended."""
    others = [multiprocessing.Process(target=_work) for _ in range(processes)]
    for other in others:
        other.start()
    for other in others:
        other.join()


def send(chains: int, length: int, number: int) -> None:
    """Defer the first steps."""
    with app.open():
        for _ in range(chains):
            link.defer(left=length, number=number)


def _work() -> None:
    app.run_worker(concurrency=1)
