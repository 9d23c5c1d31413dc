"""Steps that sleep, wait for certain events, get arguments; errors caught together; and starts without an input."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestrator import start_process
from orchestrator.engine.claims import leases
from orchestrator.engine.operations import pause, redo, resume, skip, unpause
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import Lost, StepRun, StepStatus
from orchestrator.testing import Process, pass_time, registered, run, started
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

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
NAME = "sleep_1_day"


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(*WORKFLOWS):
        yield


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
    leases.end([asleep(process).owner or "nobody"])
    run()

    assert asleep(process).wake_at == due


def test_a_pause_stops_a_sleep_with_what_is_left() -> None:
    process = started(Reminding, Order())
    pass_time(DAY / 2)
    pause(process.id, True, request=asked())
    left = asleep(process).remaining
    assert left is not None
    assert abs(left - DAY / 2) < HOUR
    pass_time(3 * DAY)
    assert process.status == "paused"
    unpause(process.id, True, request=asked())
    pass_time(DAY / 4)
    assert process.open_steps == [NAME]
    pass_time(DAY / 2)

    assert process.status == "completed"


def test_a_sleep_can_be_skipped_and_is_not_redone() -> None:
    process = started(Reminding, Order())
    with pytest.raises(OperationRefused, match="there is no result to redo"):
        redo(process.id, NAME, request=asked())
    skip(process.id, asleep(process).pk, None, request=asked())
    run()

    assert (process.status, process.result) == ("completed", "O-1 is sent")


def test_a_cancelled_sleep_ends_and_is_undone() -> None:
    process = started(Reminding, Order())
    process.cancel()

    assert (process.status, process.path[-1]) == ("cancelled", "undo note")


def test_resuming_begins_a_sleep_anew() -> None:
    process = started(Resting, Order("O-2"))
    pass_time(DAY + HOUR)
    child = process.instance.step_runs.get(node="reminding").child
    assert child is not None
    assert child.status == "completed"

    waiting = started(Napping, Order("O-3"))
    pass_time(DAY + HOUR)
    revision = waiting.instance.revision
    pass_time(DAY)
    resume(waiting.id, revision, request=asked())
    run()
    again = asleep(waiting, "nap")
    assert (again.visit, again.round) == (2, 2)
    waiting.finish()
    assert waiting.result == "O-3 is sent"


def test_a_sleep_in_a_loop_has_a_visit_for_each_round() -> None:
    process = started(Napping, Order())
    process.finish()

    assert process.path.count("nap") == 3


def test_a_sleep_shows_when_it_goes_on(client: Client, viewer: User) -> None:
    process = started(Reminding, Order())
    client.force_login(viewer)

    page = client.get(f"/processes/{process.id}/").content.decode()

    assert "Goes on in" in page
    assert "Deadline in" not in page


# Waiting for certain events


def test_a_step_waits_for_the_event_that_fits() -> None:
    process = started(Paying, Order(size=2))
    for event in (Paid("O-2", 20), Paid("O-1", 30), Paid("O-1", 20, "USD")):
        assert process.send(event) == "parked"
    assert process.status == "waiting"
    assert process.send(Paid("O-1", 20)) == "moved"
    assert process.status == "completed"

    for size, event, verdict in (
        (2, Paid("O-3", 20, "CHF"), "moved"),
        (0, Paid("O-3", 0), "parked"),
    ):
        assert started(Paying, Order("O-3", size)).send(event) == verdict


def test_of_two_waits_each_takes_what_it_wants() -> None:
    process = started(TwoPayments, Order())
    assert process.send(Paid("O-1", 1, "USD")) == "parked"
    assert process.send(Paid("O-1", 1, "CHF")) == "moved"
    assert process.open_steps == ["euros"]
    assert process.send(Paid("O-1", 1, "CHF")) == "parked"
    assert process.send(Paid("O-1", 1, "EUR")) == "moved"

    assert process.status == "completed"


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
    visit = StepRun.objects.get(node="risky")
    visit.attempt, visit.owner, visit.status = 1, "a worker", StepStatus.RUNNING
    visit.save()
    name = leases.name_of(step_runs, visit.pk)
    leases.end(["a worker"], in_hand={name: Lost.TIMED_OUT})
    run()

    assert Process(receipt.process_id).result_of("mend") == "TimedOut"


# Without an input


def test_a_workflow_without_an_input_is_started_without_one() -> None:
    receipt = start_process(Plain)
    run()

    process = Process(receipt.process_id)
    assert process.open_steps == [NAME]
    assert started(Plain).open_steps == [NAME]
    assert (
        start_process(Plain, id="1").process_id
        == start_process("plain", id="1").process_id
    )


def test_a_workflow_with_an_input_is_not() -> None:
    with pytest.raises(InvalidMessage, match="starts with Order, not with None"):
        start_process(Reminding)
