"""Calls in flight in one worker: what one does to the worker's threads or event loop harms no other."""

from collections.abc import Callable
from itertools import product

import pytest

from orchestrator.engine import operations
from orchestrator.models import Incident, StepRun, StepStatus
from tests.apps.waiting_calls import processes as p
from tests.apps.waiting_calls.desk import all_ended, started, until
from tests.apps.waiting_calls.fixtures import Begin, begin, forgotten, waiting_calls
from tests.apps.waiting_calls.ways import entries, gate_file, open_gate
from tests.reliability.test_waiting_calls_in_trouble import (
    attempt,
    begun,
    ended,
    needs_people,
    visit,
)
from tests.services.database import NEEDS_SERVER
from tests.services.doing import did
from tests.services.sizes import first_of
from tests.services.words import words
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


SPOILS = ["files", "files, and wait", "files in a thread", "selector"]


@pytest.mark.parametrize("how", first_of(SPOILS))
def test_what_closes_all_files_is_charged_alone(begin: Begin, how: str) -> None:
    """Its worker is replaced; what must not be made twice is for people, as with any lost worker."""
    workers = begin()
    before = [started(p.OneCall, f"before {n}", "gate all") for n in range(3)]
    once = started(p.OnceOnly, "once", "gate all")
    until(lambda: len(entries()) == 4, workers)
    guilty = started(p.OneCall, "guilty", f"spoil {how}")
    until(lambda: ended(guilty) and needs_people(once), workers)
    open_gate("all")
    until(lambda: ended(*before), workers)

    assert (visit(once).status, len(entries(name="once"))) == (StepStatus.FAILED, 1)
    assert attempt(guilty) == 2
    assert set(map(attempt, before)) == {1}
    assert len({entry.worker for entry in entries(name="before 0")}) == 2


def test_a_worker_whose_event_loop_is_broken_is_replaced(begin: Begin) -> None:
    """Where nothing shows which call has broken it, it is the one that ran last."""
    workers = begin()
    started(p.OneCall, "before", "gate all")
    until(lambda: begun("before"), workers)
    started(p.OneCall, "guilty", "spoil selector later")
    until(lambda: len(entries(name="guilty")) == 2, workers)
    open_gate("all")
    until(all_ended, workers)

    assert sorted(attempts().values()) == [1, 2]


LEFT = words("decimals session executor")
MORE = ["session of a thread", "other executor"]
LOST = pytest.param("lost connection", marks=NEEDS_SERVER)


@pytest.mark.parametrize("what", [*LEFT, *first_of(MORE), LOST])
def test_what_a_call_leaves_behind_meets_no_other(begin: Begin, what: str) -> None:
    workers = begin()
    started(p.Looks, "first")
    until(all_ended, workers)
    before = started(p.Looks, "before", "gate all")
    until(lambda: begun("before"), workers)
    guilty = started(p.OneCall, "guilty", f"leave_behind {what}")
    until(lambda: ended(guilty), workers)
    open_gate("all")
    until(lambda: ended(before), workers)  # it goes on before another begins
    for number in range(3):
        started(p.Looks, f"after {number}")
    until(all_ended, workers)

    assert set(attempts().values()) == {1}
    met = StepRun.objects.filter(node="look_around").values_list("result", flat=True)
    assert len(set(met)) == 1
    assert len({entry.worker for entry in entries()}) == 1


def test_a_call_that_leaves_a_transaction_open_fails_alone(begin: Begin) -> None:
    workers = begin()
    guilty = started(p.OneCall, "guilty", "leave_behind transaction")
    until(lambda: needs_people(guilty), workers)
    started(p.Looks, "after")
    until(all_but_failed_ended, workers)

    assert attempts() == {"guilty": 1, "after": 1}
    [incident] = Incident.objects.open()
    assert "left a database transaction open" in incident.message


def all_but_failed_ended() -> bool:
    return not StepRun.objects.exclude(
        status__in=[StepStatus.DONE, StepStatus.FAILED]
    ).exists()


def test_a_call_that_cancels_all_tasks_cancels_no_other_call(begin: Begin) -> None:
    workers = begin()
    for kind, how in product((p.OneCall, p.OnceOnly), ("gate", "gather")):
        started(kind, f"{kind.__name__} {how}", f"{how} all")
    until(lambda: len(entries()) == 4, workers)
    guilty = started(p.OneCall, "guilty", "cancel_all")
    until(lambda: ended(guilty), workers)
    open_gate("all")
    until(all_ended, workers)

    assert set(attempts().values()) == {1}
    assert (len(entries()), entries("cancelled")) == (5, [])
