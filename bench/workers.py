"""Worker processes for a measurement, forked from the measuring process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, connections

from bench import processor
from bench.game import Figures
from orchestrator.workers.supervisor import supervise


@dataclass(frozen=True)
class Used:
    """The use up to a moment: processor time in seconds, and statements sent to the database."""

    workers: float | None
    database: dict[int, float]
    statements: int


@dataclass(frozen=True)
class Team:
    """Workers, and their use of processor and database."""

    pids: list[int]
    statements: Any = field(default_factory=lambda: multiprocessing.Value("q"))

    def count_statements(self) -> None:
        """Count the statements that this process and its children send to the database."""

        def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            with self.statements:
                self.statements.value += 1
            return execute(sql, params, many, context)

        connection.execute_wrappers.append(count)

    def used(self) -> Used:
        return Used(
            processor.of_family(self.pids),
            processor.of_database(),
            self.statements.value,
        )

    def figures(self, before: Used, units: int) -> Figures:
        """Return the use since then for each of so many units."""
        found: dict[str, float | None] = {
            "cpu_ms": (processor.of_family(self.pids) or 0) - (before.workers or 0),
            "database_cpu_ms": processor.since(before.database),
        }
        figures = {
            name: seconds * 1000 / units for name, seconds in found.items() if seconds
        }
        if sent := self.statements.value - before.statements:
            figures["statements"] = sent / units
        return figures


@contextmanager
def workers(queue: str, count: int) -> Iterator[Team]:
    """Run so many workers of a queue for the block, under a supervisor as in production."""
    team = Team([])

    def work() -> None:
        team.count_statements()
        supervise(queue, count)

    team.pids.append(fork(work))
    with end_after(team.pids):
        yield team


@contextmanager
def end_after(pids: list[int]) -> Iterator[None]:
    """End these processes after the block."""
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        wait(pids)


def fork(work: Callable[[], object]) -> int:
    """Run a function in a child process, and end the child."""
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
    except BaseException:  # noqa: BLE001  # it would be told to nobody
        traceback.print_exc()
    finally:
        os._exit(status)


def wait(pids: list[int]) -> None:
    for pid in pids:
        os.waitpid(pid, 0)
