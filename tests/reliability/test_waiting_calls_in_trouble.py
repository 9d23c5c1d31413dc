"""What becomes of calls in flight when a worker, a call, or a person puts an end to them."""

import os
import signal
import time
from collections import Counter

import pytest
from django.db import connection, transaction

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.engine import operations
from orchestrator.models import (
    CommandStatus,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
)
from orchestrator.workers.event_loop import CANCEL_SECONDS
from tests.apps.waiting_calls import processes as p
from tests.apps.waiting_calls.desk import all_ended, started, until
from tests.apps.waiting_calls.fixtures import (
    Begin,
    begin,
    forgotten,
    said,
    waiting_calls,
)
from tests.apps.waiting_calls.ways import entries, open_gate
from tests.services.database import NEEDS_SERVER
from tests.services.doing import did
from tests.services.sizes import size

__all__ = ["begin", "forgotten", "waiting_calls"]


def ended(*processes: ProcessInstance) -> bool:
    """Whether all of these processes have ended."""
    live = ProcessInstance.objects.filter(finished_at=None)
    return not live.filter(pk__in=[process.pk for process in processes]).exists()


def needs_people(process: ProcessInstance) -> bool:
    return Incident.objects.open().filter(instance=process).exists()


def visit(process: ProcessInstance) -> StepRun:
    return StepRun.objects.get(instance=process)


def attempt(process: ProcessInstance) -> int:
    return visit(process).attempt


def begun(*names: str) -> bool:
    """Whether all of these calls have begun."""
    return set(names) <= {entry.name for entry in entries()}


# The worker


def test_each_call_is_charged_once_when_its_worker_is_killed(begin: Begin) -> None:
    number = size(10, full=100)
    workers = begin()
    again = [started(p.OneCall, f"again-{i}", "gate all") for i in range(number)]
    once = [started(p.OnceOnly, f"once-{i}", "gate all") for i in range(number)]
    until(lambda: len(entries()) == 2 * number, workers)
    os.kill(workers.caller or 0, signal.SIGKILL)
    until(lambda: all(map(needs_people, once)), workers)
    open_gate("all")
    until(lambda: ended(*again), workers)

    assert set(map(attempt, again)) == {2}
    assert {visit(process).status for process in once} == {StepStatus.FAILED}
    assert set(Counter(e.name for e in entries()).values()) == {1, 2}
    assert len(entries()) == 3 * number


def test_a_stop_gives_calls_in_flight_back_uncharged(begin: Begin) -> None:
    """But for those that must not be made twice: they are left to people."""
    workers = begin()
    again = started(p.OneCall, "again", "gate all")
    once = started(p.OnceOnly, "once", "gate all")
    until(lambda: begun("again", "once"), workers)
    assert workers.stop() == 0

    run = visit(again)
    assert (run.status, run.attempt, run.owner) == (StepStatus.READY, 0, "")
    open_gate("all")
    others = begin()
    until(lambda: ended(again) and needs_people(once), others)
    assert (attempt(again), attempt(once)) == (1, 1)
    assert len(entries(name="once")) == 1


def test_what_a_call_gives_after_its_lease_was_lost_is_not_stored(begin: Begin) -> None:
    workers = begin()
    process = started(p.OneCall, "a", "gate all")
    until(lambda: begun("a"), workers)
    StepRun.objects.update(owner="somebody else", attempt=7)
    until(lambda: bool(entries("cancelled")), workers)
    open_gate("all")
    StepRun.objects.update(owner="", attempt=0, status=StepStatus.READY)
    until(all_ended, workers)

    assert (visit(process).attempt, len(entries("end"))) == (1, 1)


@NEEDS_SERVER
def test_results_are_kept_while_the_database_ends_sessions(begin: Begin) -> None:
    """Those that came together go together, and one by one where that is refused: none of them is made again."""
    workers = begin()
    for number in range(10):
        started(p.OneCall, f"a-{number}", "gate all")
    until(lambda: len(entries()) == 10, workers)
    with transaction.atomic():
        list(ProcessInstance.objects.select_for_update())
        open_gate("all")
        for _ in range(3):
            until(end_who_waits_for_a_lock, workers)
    until(all_ended, workers)

    assert len(entries()) == 10
    runs = StepRun.objects.values_list("attempt", "given_back", "error")
    assert set(runs) == {(1, 0, "")}


def end_who_waits_for_a_lock() -> bool:
    """End the sessions that wait for what this one has locked; whether there were any."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchall())


# The call


def test_a_call_whose_time_is_over_is_cancelled_and_tried_again(begin: Begin) -> None:
    process = started(p.ShortCall, "a", "gate all")
    until(lambda: needs_people(process), begin())

    assert len(entries("cancelled")) == len(entries()) == 2
    assert len({entry.worker for entry in entries()}) == 1
    incident = Incident.objects.get(resolved_at=None)
    assert incident.message.startswith("TimedOut: it ran longer than it may")


def test_a_call_that_is_not_heard_of_is_cancelled(begin: Begin) -> None:
    process = started(p.Silent, "a", "gate all")
    until(all_ended, begin())

    assert len(entries("cancelled")) == 1
    assert visit(process).attempt == 2


@NEEDS_SERVER
def test_a_call_ends_in_time_though_what_it_said_cannot_be_stored(begin: Begin) -> None:
    """That is not its fault, and nobody needs it any more: its worker need not be replaced."""
    workers = begin()
    process = started(p.TellsLate, "a")
    until(lambda: begun("a"), workers)
    caller = workers.caller
    with transaction.atomic():
        list(StepRun.objects.select_for_update())
        open_gate("go")
        until(lambda: bool(entries("cancelled")), workers)
        time.sleep(CANCEL_SECONDS + 0.5)
    until(all_ended, workers)

    assert visit(process).attempt == 2
    assert "the worker is replaced" not in said(workers)
    assert workers.caller == caller


@pytest.mark.parametrize(
    ("kind", "how"), [(p.ShortCall, "deaf once"), (p.ShortThread, "gate a")]
)
def test_a_call_that_goes_on_after_its_time_is_fenced_and_its_worker_replaced(
    begin: Begin, kind: type[Workflow], how: str
) -> None:
    workers = begin()
    other = started(p.OneCall, "other", "gate all")
    until(lambda: begun("other"), workers)
    late = started(kind, "late", how)
    until(lambda: visit(late).lost != "", workers)
    assert visit(other).status == StepStatus.RUNNING  # it is waited for
    first = {entry.worker for entry in entries()}
    open_gate("all")
    until(lambda: ended(other), workers)
    open_gate("a")  # of the thread
    until(all_ended, workers)

    assert len(first) == 1
    assert (attempt(other), attempt(late)) == (1, 2)
    assert {entry.worker for entry in entries(name="late")} > first


def test_a_call_holding_up_all_is_charged_and_no_idempotent_one(begin: Begin) -> None:
    workers = begin()
    neighbour = started(p.OneCall, "neighbour", "gate all")
    once = started(p.OnceOnly, "once", "gate all")
    until(lambda: begun("neighbour", "once"), workers)
    guilty = started(p.OneCall, "guilty", "block once")
    until(lambda: needs_people(once), workers)
    until(lambda: len(entries(name="neighbour")) == 2, workers)
    open_gate("all")
    until(lambda: ended(guilty, neighbour), workers)

    assert (attempt(guilty), attempt(neighbour)) == (2, 1)
    assert visit(once).status == StepStatus.FAILED


FAILURES = {
    "fail": "ValueError: it did not work",
    "leave": "ExitRefused: call raised SystemExit: 3",
    "leave_in_a_task": "ExitRefused: leave raised SystemExit",
}


def test_calls_fail_as_plain_steps_and_commands_do(begin: Begin) -> None:
    failing = {how: started(p.OneCall, how, how) for how in FAILURES}
    start_process(p.Calling, p.Wanted("a", "fail"))
    incidents = Incident.objects.filter(resolved_at=None)
    until(lambda: incidents.count() == len(failing) + 1, begin())

    for how, process in failing.items():
        assert incidents.get(instance=process).message.startswith(FAILURES[how])
        assert visit(process).attempt == 3
    command = IssuedCommand.objects.get(type="CallOutside")
    assert (command.status, command.attempt) == (CommandStatus.FAILED, 2)
    assert len({entry.worker for entry in entries()}) == 1


# What they say


def test_calls_report_and_save_and_go_on_from_there(begin: Begin) -> None:
    runs = [started(kind, "a") for kind in (p.Reports, p.ThreadReports)]
    until(all_ended, begin())

    call, thread = map(visit, runs)
    assert (call.result, call.attempt, call.saved) == (2, 3, 2)
    assert call.progress == {"done": 3, "total": 3, "message": "page 3"}
    assert (thread.result, thread.saved) == (1, 1)
    assert thread.progress == {"done": 2, "total": 2, "message": "page 2"}


# People


def test_a_process_is_cancelled_while_its_call_is_in_flight(begin: Begin) -> None:
    """And what was done is undone by a call."""
    workers = begin()
    in_flight = started(p.OneCall, "a", "gate all")
    done = started(p.Undone, "b", "gate all")
    until(lambda: begun("a", "b"), workers)
    for process in (in_flight, done):
        did(operations.cancel, process)
    until(lambda: bool(entries("cancelled", "a")), workers)
    until(all_ended, workers)

    assert ProcessInstance.objects.get(pk=in_flight.pk).status == Status.CANCELLED
    assert visit(in_flight).status == StepStatus.CANCELLED
    assert [entry.name for entry in entries("undone")] == ["b"]


def test_a_process_is_paused_while_its_call_is_in_flight(begin: Begin) -> None:
    workers = begin()
    process = started(p.Mixed, "a", "gate all")
    until(lambda: begun("A"), workers)
    did(operations.pause, process)
    open_gate("all")
    until(
        lambda: StepRun.objects.filter(result="A", node="ask_model").exists(), workers
    )
    paused = StepRun.objects.get(node="ask_again")
    assert (paused.status, paused.wake_at) == (StepStatus.READY, None)
    did(operations.unpause, process)
    until(all_ended, workers)
