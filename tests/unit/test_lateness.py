"""A worker's bounds follow the time for which its thread has to wait for a processor."""

import os
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.engine.work import worker_slice
from orchestrator.engine.work.worker_slice import (
    FORGOTTEN_SECONDS,
    MOST_LATE,
    Lateness,
)
from tests.services.burners import burners


@pytest.mark.parametrize(
    ("ran", "waited", "factor"),
    [
        (0.2, 0.0, 1.0),
        (0.1, 0.2, 3.0),
        (0.0, 5.0, MOST_LATE),
        (0.01, 0.01, 1.0),  # too little to tell
        (-1.0, 0.2, 1.0),  # the counts of a new process
    ],
)
def test_the_factor_is_how_much_longer_it_takes(
    ran: float, waited: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [(7.0, 2.0), (7.0 + ran, 2.0 + waited)]
    monkeypatch.setattr(worker_slice, "_processor_times", lambda: counts.pop(0))
    clock = SimpleNamespace(monotonic=count().__next__)
    monkeypatch.setattr(worker_slice, "time", clock)
    found = Lateness()
    found._before = (7.0, 2.0)
    for _ in range(2):
        found.measure()

    assert found.factor == pytest.approx(factor)


def test_a_thread_that_mostly_sleeps_is_not_late_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sleeping functions are overtaken as soon as on a quiet machine."""
    counts = [(7.0, 2.0), (7.1, 4.0), (7.11, 4.01)]
    moments = [0.0, 2.0, 2.0 + FORGOTTEN_SECONDS]
    monkeypatch.setattr(worker_slice, "_processor_times", lambda: counts.pop(0))
    clock = SimpleNamespace(monotonic=lambda: moments.pop(0))
    monkeypatch.setattr(worker_slice, "time", clock)
    found = Lateness()
    factors = []
    for _ in range(3):
        found.measure()
        factors.append(found.factor)

    assert factors[1:] == [MOST_LATE, 1.0]


def test_without_the_counts_of_linux_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_slice, "_processor_times", lambda: (0.0, 0.0))
    found = Lateness()
    found.measure()

    assert found.factor == 1


@pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="Linux alone counts it"
)
def test_a_thread_beside_others_on_its_processor_is_late() -> None:
    """It is measured over the running and waiting of its own, however long that takes."""
    mine = os.sched_getaffinity(0)
    found = Lateness()
    os.sched_setaffinity(0, {min(mine)})
    try:
        with burners(4, seconds=60):
            found.measure()
            ends = time.process_time() + 0.3
            while time.process_time() < ends:
                pass
            found.measure()
    finally:
        os.sched_setaffinity(0, mine)

    assert found.factor > 1.5
