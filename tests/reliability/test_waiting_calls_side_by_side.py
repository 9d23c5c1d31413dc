"""Calls in flight in one worker: what one does to the worker's threads or event loop harms no other."""

from collections.abc import Callable

import pytest

from orchestrator.engine import operations
from orchestrator.models import StepRun
from tests.apps.waiting_calls import processes as p
from tests.apps.waiting_calls.desk import all_ended, started, until
from tests.apps.waiting_calls.fixtures import Begin, begin, forgotten, waiting_calls
from tests.apps.waiting_calls.ways import entries, gate_file, open_gate
from tests.reliability.test_waiting_calls_in_trouble import begun, ended
from tests.services.doing import did
from tests.services.sizes import first_of
from tests.services.workers import Workers

__all__ = ["begin", "forgotten", "waiting_calls"]


def log_of(workers: Workers) -> Callable[[], str]:
    """Return a function that gives what they have logged since; before they may have worked for other tests."""
    log = workers.supervisor.log
    before = len(log.read_text())
    return lambda: log.read_text()[before:]


def attempts() -> dict[str, int]:
    """Return how many attempts each process's call has had."""
    rows = StepRun.objects.values_list("instance__data__name", "attempt")
    return dict(rows)


def test_a_thread_that_cannot_be_started_fails_its_own_call_alone(begin: Begin) -> None:
    workers = begin()
    logged = log_of(workers)
    started(p.OneCall, "makes none", "have_no_threads none")
    until(all_ended, workers)
    open_gate("none")
    blocking = [started(p.InThread, f"thread {number}") for number in range(2)]
    others = [started(p.OneCall, f"other {number}") for number in range(4)]

    until(lambda: ended(*others), workers)
    runs = StepRun.objects.filter(instance__in=blocking)
    until(lambda: all("new thread" in run.error for run in runs.all()), workers)
    gate_file("none").unlink()
    afterwards = started(p.InThread, "afterwards")
    until(lambda: ended(afterwards), workers)
    assert {attempts()[f"other {number}"] for number in range(4)} == {1}
    assert "is killed" not in logged()


@pytest.mark.parametrize("how", first_of(["stop", "exit"]))
def test_what_ends_the_event_loop_ends_no_call(begin: Begin, how: str) -> None:
    workers = begin()
    logged = log_of(workers)
    started(p.OneCall, "before", "gate all")
    until(lambda: begun("before"), workers)
    started(p.OneCall, "guilty", f"end_the_loop {how}")
    until(lambda: begun("guilty"), workers)
    started(p.OneCall, "after")
    open_gate("all")
    until(all_ended, workers)

    assert set(attempts().values()) == {1}
    assert "the event loop" in logged()


def test_a_step_has_no_more_threads_than_it_may_though_processes_are_cancelled(
    begin: Begin,
) -> None:
    """A thread cannot be ended: it keeps its place until it ends by itself."""
    workers = begin()
    logged = log_of(workers)
    cancelled = [started(p.InThread, f"a{number}", "gate a") for number in range(2)]
    until(lambda: begun("a0", "a1"), workers)
    for process in cancelled:
        did(operations.cancel, process)
    until(lambda: logged().count("another worker has settled") == 2, workers)
    for number in range(2):
        started(p.InThread, f"b{number}")
    started(p.OneCall, "other")
    until(lambda: begun("other"), workers)
    assert len(entries()) == 3

    open_gate("a")
    until(all_ended, workers)
    assert begun("b0", "b1")
