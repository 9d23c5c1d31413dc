"""Steps that sleep, wait for certain events, get arguments; errors caught together; and starts without an input."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator import start_process
from orchestrator.engine.operations import pause, redo, resume, skip, unpause
from orchestrator.engine.work import leases
from orchestrator.exceptions import InvalidMessage
from orchestrator.models import Lost, StepRun
from orchestrator.testing import Process, pass_time, run, started
from tests.apps.richer_steps.processes import (
    DAY,
    WORKFLOWS,
    Collecting,
    Guarded,
    Labelling,
    Napping,
    Order,
    Paid,
    Paying,
    Plain,
    Reminding,
    Resting,
    TwoPayments,
)
from tests.services.asking import asked
from tests.services.client import Read
from tests.services.doing import refused
from tests.services.operated import knowing, operated

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
NAME = "sleep_1_day"


known = knowing(*WORKFLOWS)


def asleep(process: Process, step: str = NAME) -> StepRun:
    return process.instance.step_runs.get(node=step, finished_at=None)


# Sleeping


def test_a_sleeping_step_goes_on_when_its_time_is_over() -> None:
    process = started(Reminding, Order())
    assert (process.status, process.open_steps) == ("waiting", [NAME])
    pass_time(DAY - HOUR)
    assert process.open_steps == [NAME]
    pass_time(2 * HOUR)

    assert (process.status, process.result) == ("completed", "O-1 is sent")
    assert process.path == ["note", NAME, "send"]


def test_a_sleep_is_not_begun_anew_by_others_restarts() -> None:
    process = started(Reminding, Order())
    due = asleep(process).wake_at
    leases.end_leases([asleep(process).owner or "nobody"])
    run()

    assert asleep(process).wake_at == due


def test_a_pause_stops_a_sleep_with_what_is_left() -> None:
    process = started(Reminding, Order())
    pass_time(DAY / 2)
    pause(process.id, True, request=asked())
    left = asleep(process).remaining or HOUR
    assert abs(left - DAY / 2) < HOUR
    pass_time(3 * DAY)
    assert process.status == "paused"
    unpause(process.id, True, request=asked())
    pass_time(DAY / 4)
    assert process.open_steps == [NAME]
    pass_time(DAY / 2)

    assert process.status == "completed"


def test_a_sleep_can_be_skipped_and_cancelled_and_is_not_redone() -> None:
    process, other = started(Reminding, Order()), started(Reminding, Order("O-2"))
    refused("there is no result to redo", redo, process.instance, NAME)
    operated(skip, process.instance, asleep(process).pk, None)
    other.cancel()

    assert (process.status, process.result) == ("completed", "O-1 is sent")
    assert (other.status, other.path[-1]) == ("cancelled", "undo note")


def test_resuming_begins_a_sleep_anew() -> None:
    process = started(Resting, Order("O-2"))
    pass_time(DAY + HOUR)
    assert process.children[0].status == "completed"

    waiting = started(Napping, Order("O-3"))
    pass_time(DAY + HOUR)
    revision = waiting.instance.revision
    pass_time(DAY)
    operated(resume, waiting.instance, revision)
    again = asleep(waiting, "nap")
    assert (again.visit, again.round) == (2, 2)
    assert waiting.finish().result == "O-3 is sent"


def test_a_sleep_in_a_loop_has_a_visit_for_each_round() -> None:
    assert started(Napping, Order()).finish().path.count("nap") == 3


def test_a_sleep_shows_when_it_goes_on(page_of: Read) -> None:
    page = page_of(started(Reminding, Order()).instance)

    assert "Goes on in" in page
    assert "Deadline in" not in page


# Waiting for certain events


def test_a_step_waits_for_the_event_that_fits() -> None:
    process = started(Paying, Order(size=2))
    for event in (Paid("O-2", 20), Paid("O-1", 30), Paid("O-1", 20, "USD")):
        assert (process.send(event), process.status) == ("parked", "waiting")
    assert process.send(Paid("O-1", 20)) == "moved"
    assert process.status == "completed"

    assert started(Paying, Order("O-3", 2)).send(Paid("O-3", 20, "CHF")) == "moved"
    assert started(Paying, Order("O-4", 0)).send(Paid("O-4", 0)) == "parked"


def test_of_two_waits_each_takes_what_it_wants() -> None:
    process = started(TwoPayments, Order())
    verdicts = [process.send(Paid("O-1", 1, one)) for one in ("USD", "CHF")]
    assert (verdicts, process.open_steps) == (["parked", "moved"], ["euros"])
    verdicts = [process.send(Paid("O-1", 1, one)) for one in ("CHF", "EUR")]

    assert (verdicts, process.status) == (["parked", "moved"], "completed")


def test_an_event_asks_for_what_many_guards_want_in_one_query() -> None:
    def asked_for(size: int) -> int:
        process = started(Collecting, Order(str(size), size))
        assert len(process.open_steps) == size
        with CaptureQueriesContext(connection) as queries:
            assert process.send(Paid("O-1", 10 * size)) == "moved"
            assert process.send(Paid("O-1", 1)) == "parked"
        return len(queries)

    assert asked_for(20) == asked_for(2)


# Arguments


def test_one_function_serves_several_steps() -> None:
    process = started(Labelling, Order(size=2))

    assert process.result_of("german") == "de: Paket x 1"
    assert process.result_of("copied") == "O-1: de: Paket x 1 x 20"
    assert process.result_of("stamp") == ["1 sent", "2 sent"]


# Errors


def test_several_errors_are_caught_by_one_row_and_no_others() -> None:
    for order, told in (("key", "KeyError"), ("connection", "ConnectionResetError")):
        process = started(Guarded, Order(order))
        assert (process.status, process.result_of("mend")) == ("completed", told)

    assert started(Guarded, Order("value")).status == "failed"


def test_a_step_that_runs_too_long_is_caught_by_its_type() -> None:
    receipt = start_process(Guarded, Order("slow"))
    risky = StepRun.objects.filter(node="risky")
    risky.update(attempt=1, owner="a worker", status="running")
    name = leases.work_name(risky.get())
    leases.end_leases(["a worker"], running={name: Lost.TIMED_OUT})
    run()

    assert Process(receipt.process_id).result_of("mend") == "TimedOut"


# Without an input


def test_a_workflow_is_started_without_an_input_if_it_has_none() -> None:
    assert started(Plain).open_steps == [NAME]
    one, same = (start_process(plain, id="1") for plain in (Plain, "plain"))
    assert one.process_id == same.process_id
    with pytest.raises(InvalidMessage, match="starts with Order, not with None"):
        start_process(Reminding)
