"""The process that stores a supervisor's reports: whatever it is at, the supervisor does not wait for it."""

import os
import signal
from collections.abc import Iterator

import pytest
from django.db import InterfaceError

from orchestrator import process_group
from orchestrator.engine.loops.clock_watch import ClockWatch
from orchestrator.workers import database_process
from orchestrator.workers.database_process import DatabaseProcess, Sweeps, WorkerReport
from tests.services.patience import wait_for

NOTHING = WorkerReport("supervisor", "default")
LONG = WorkerReport("supervisor" * 1_000_000, "default")
"""More than the line between the two holds, as the results of a lost worker may be."""


@pytest.fixture
def process() -> Iterator[DatabaseProcess]:
    found = DatabaseProcess()
    yield found
    found.end()


def stored(process: DatabaseProcess, report: WorkerReport) -> bool:
    process.send(report)
    answers: list[bool] = []

    def answered() -> bool:
        told = process.answer()
        answers.extend([told[1]] if told else [])
        return bool(answers)

    wait_for(answered, 20)
    return answers[0]


@pytest.mark.timeout(60)
def test_one_that_is_stopped_is_replaced(process: DatabaseProcess) -> None:
    assert stored(process, NOTHING)
    first = process.pid
    os.kill(first, signal.SIGSTOP)
    wait_for(lambda: process_group.is_stopped(first), 20)

    assert stored(process, LONG)
    assert process.pid != first


def test_a_connection_that_was_closed_is_a_refusal_and_does_not_end_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def closed(watch: ClockWatch) -> None:
        raise InterfaceError("the connection is closed")

    monkeypatch.setattr(ClockWatch, "look", closed)
    sweep = WorkerReport("supervisor", "default", sweep=True)
    assert database_process._store(sweep, Sweeps("default")) is None
