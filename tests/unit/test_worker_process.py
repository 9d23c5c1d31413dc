"""When a supervisor kills a worker, as far as its clock decides; the rest is in the tests of frozen workers."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.models import Lost
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.supervisor import LATE_SECONDS, WorkerProcess

TICK = 0.1  # seconds


@pytest.fixture
def child() -> Iterator[WorkerProcess]:
    """Return a worker process that does nothing."""
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    process = subprocess.Popen(sleep, process_group=0)
    yield WorkerProcess(process.pid, CurrentWorker())
    process.kill()
    process.wait()


@pytest.mark.parametrize("watched", [(-1, "step:1"), (60, "step:1", -1)])
def test_a_late_or_silent_worker_is_killed(watched: Any, child: WorkerProcess) -> None:
    with child.worker.slot.watch(*watched):
        child.look(TICK)

    assert child.killed == Lost.TIMED_OUT


def test_a_report_takes_nothing_of_the_heartbeat(child: WorkerProcess) -> None:
    slot = child.worker.slot
    with slot.watch(60, "step:1", heartbeat=-1) as reporting:
        with reporting():
            child.look(TICK)
        assert child.killed is None
        child.look(TICK)

    assert child.killed == Lost.TIMED_OUT


def test_a_report_gives_no_more_than_the_work_may_take(child: WorkerProcess) -> None:
    slot = child.worker.slot
    with slot.watch(-1, "step:1", heartbeat=60) as reporting, reporting():
        child.look(TICK)

    assert child.killed == Lost.TIMED_OUT


def test_time_of_a_late_supervisor_is_given_to_the_work(child: WorkerProcess) -> None:
    """It may have been the whole machine that stood still; what the worker had left of its time is still left."""
    with child.worker.slot.watch(-1, "step:1"):
        child.look(5)
        child.look(TICK)
    assert child.killed is None
    with child.worker.slot.watch(-5 + LATE_SECONDS, "step:1"):
        child.look(5)
    assert child.killed == Lost.TIMED_OUT


def test_what_was_given_to_one_is_not_given_to_the_next(child: WorkerProcess) -> None:
    with child.worker.slot.watch(-1, "step:1"):
        child.look(5)
    with child.worker.slot.watch(-1, "step:2"):
        child.look(TICK)

    assert child.killed == Lost.TIMED_OUT


def test_a_worker_holds_its_work_until_it_is_killed(child: WorkerProcess) -> None:
    assert not child.as_live.holds
    with child.worker.slot.watch(60, "step:1"):
        assert child.as_live.holds
    with child.worker.slot.watch(-1, "step:1"):
        child.look(TICK)
        assert not child.as_live.holds
