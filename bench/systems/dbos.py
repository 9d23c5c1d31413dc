"""DBOS: a workflow function whose steps are checkpointed in PostgreSQL, from a queue that its processes poll."""

import multiprocessing
import os

from dbos import DBOS, DBOSClient, run_dbos_database_migrations

from bench.steps_told import step

PLACE = os.environ["DATABASE_URL"]
SIDE_BY_SIDE = 10
"""How many workflows one process runs at once."""
QUEUE, VERSION = "bench-dbos", "1"
POLLING_SECONDS = 0.05


@DBOS.step()  # type: ignore[untyped-decorator]  # known where it is installed
def link(left: int, number: int) -> None:
    """One step."""
    step(left, number)


@DBOS.workflow()  # type: ignore[untyped-decorator]  # known where it is installed
def links(length: int, number: int) -> None:
    """A chain."""
    for done in range(length):
        link(length - done, number)


def prepare() -> None:
    """Make its tables."""
    run_dbos_database_migrations(system_database_url=PLACE)


def work(processes: int) -> None:
    """Run workers until they are ended."""
    _launch(0, ready=True)
    others = [
        multiprocessing.get_context("spawn").Process(target=_launch, args=(number,))
        for number in range(1, processes)
    ]
    for other in others:
        other.start()
    multiprocessing.Event().wait()


def send(chains: int, length: int, number: int) -> None:
    """Enqueue workflows."""
    client = DBOSClient(system_database_url=PLACE)
    for _ in range(chains):
        client.enqueue(
            {"queue_name": QUEUE, "workflow_name": "links", "app_version": VERSION},
            length,
            number,
        )


def _launch(number: int, *, ready: bool = False) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": PLACE,
            "application_version": VERSION,
            "executor_id": str(number),
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    DBOS.register_queue(
        QUEUE, worker_concurrency=SIDE_BY_SIDE, polling_interval_sec=POLLING_SECONDS
    )
    if not ready:
        multiprocessing.Event().wait()
