"""Pausing a workflow: what is claimed finishes, nothing new starts, and it goes on with what was left."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from orchestrator import Permanent, send_event
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import (
    cancel,
    decide,
    pause,
    redo,
    refusals,
    restart,
    resume,
    retry,
    skip,
    unpause,
)
from orchestrator.engine.operations.process import UNDOING
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.steps.quick_results import QuickResults
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.steps.session import Session
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time
from tests.apps.compensation import processes, steps
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.compensation.steps import VisaGranted
from tests.apps.patterns.desk import finished, go_on, launch, results, statuses, visit
from tests.apps.patterns.fixtures import Start, start
from tests.apps.pausing import processes as apps
from tests.apps.process_managers.fixtures import known as known_too
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.doing import did, fresh, refused
from tests.services.patience import wait_for

__all__ = ["known", "start", "trips"]

PATIENCE_SECONDS = 30
"""Three leases."""

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
BAD = Permanent("no line")


@pytest.fixture(scope="module", autouse=True)
def more() -> Iterator[None]:
    """Let the running code have the workflows that are paused from within."""
    yield from known_too(*apps.WORKFLOWS)


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    apps.done.clear()
    apps.during.clear()


def paused(process: ProcessInstance, children: bool = True) -> OperatorAction:
    action: OperatorAction = did(pause, process, children)
    assert process.status == "paused"
    return action


def resumed(process: ProcessInstance) -> str:
    """Resume a process and run what is ready; return its status."""
    did(unpause, process, True)
    return go_on(process).status


def pausing(process: ProcessInstance, error: Exception | None = None) -> None:
    """Pause a process from within one of its steps, as when that had been claimed just before."""
    did(pause, process, True)
    if error is not None:
        raise error


def nothing_starts(process: ProcessInstance) -> None:
    """Look whether time or workers move it."""
    before, was_done = fresh(process).revision, [*done, *apps.done]
    pass_time(30 * DAY)
    assert (fresh(process).revision, process.status) == (before, "paused")
    assert [*done, *apps.done] == was_done
    assert not process.step_runs.filter(wake_at__isnull=False).exists()


def family_of_three() -> list[ProcessInstance]:
    """Return a process that waits for its sub-process, that one, and the sub-process of that."""
    found = [finished(apps.Top)]
    while part := found[-1].children.first():
        found.append(part)
    assert len(found) == 3
    return found


def stand(*processes: ProcessInstance) -> list[str]:
    return [fresh(process).status for process in processes]


def answered(process: ProcessInstance, step: str) -> None:
    """Decide in a step that asks; nothing runs yet."""
    decide(process.pk, visit(process, step).pk, "yes", request=asked())


def child_of(process: ProcessInstance) -> ProcessInstance:
    child: ProcessInstance = ProcessInstance.objects.filter(parent=process).latest("pk")
    return child


# What is claimed, and what follows it


def test_a_step_that_is_ready_does_not_start() -> None:
    process, careful = launch(processes.Visa), launch(processes.Careful)
    paused(process)
    paused(careful)  # its step is in a transaction of its own
    nothing_starts(process)
    assert done == []

    assert (resumed(process), done) == ("waiting", ["apply"])
    assert resumed(careful) == "completed"


def test_a_running_step_settles_and_its_successors_rest() -> None:
    process = launch(processes.Undoable)
    steps.during["flight"] = partial(pausing, process)
    go_on(process)

    assert (process.status, statuses(process)["flight"]) == ("paused", "done")
    assert "flight" in done
    assert "invoice" not in done
    nothing_starts(process)
    assert (resumed(process), done.count("invoice")) == ("waiting", 1)  # a join
    assert statuses(process)["approve"] == "waiting"


@pytest.mark.django_db(transaction=True)
def test_a_process_that_ends_meanwhile_is_paused_no_more() -> None:
    process = launch(apps.Line)
    apps.during["end"] = partial(pausing, process)
    go_on(process)

    assert (process.status, process.paused_at) == ("completed", None)
    refused("The process has ended", unpause, process, True)


# Fan-outs


@pytest.mark.parametrize(
    ("workflow", "elements", "last", "total"),
    [(apps.Squares, 40, 3, 20540), (apps.Narrow, 6, 2, 55)],
    ids=["all at once", "window"],
)
def test_claimed_elements_finish_and_the_others_rest(
    workflow: Any, elements: int, last: int, total: int
) -> None:
    process = launch(workflow, elements)
    apps.during[f"square {last}"] = partial(pausing, process)
    go_on(process)
    begun = [name for name in apps.done if name.startswith("square")]
    settled = process.step_runs.filter(kind="item", status="done").count()

    assert last <= settled == len(begun) < elements
    nothing_starts(process)
    apps.during.clear()
    assert (resumed(process), results(process)["total"]) == ("completed", total)
    assert sorted(apps.done) == sorted(set(apps.done))


def queries(call: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as sent:
        call()
    return len(sent)


def test_pausing_many_elements_takes_few_statements() -> None:
    def statements(process: ProcessInstance) -> list[int]:
        return [queries(partial(did, one, process, True)) for one in (pause, unpause)]

    few, many = launch(apps.Squares, 2), launch(apps.Squares, 400)
    for process in (few, many):
        drain(stop=iter([False, *[True] * 100]).__next__)
        assert process.step_runs.filter(kind="item").exists()
    statements(few)  # what the operator may do is read once
    assert statements(many) == statements(few)
    assert max(statements(many)) < 24  # on either database


# Time


def test_a_deadline_of_a_step_that_waits_goes_on_with_what_was_left() -> None:
    process = finished(processes.Patient)
    pass_time(DAY)
    paused(process)
    nothing_starts(process)
    left = visit(process, "reminded").remaining
    assert left is not None
    assert abs(left - DAY) < timedelta(minutes=1)

    resumed(process)
    pass_time(23 * HOUR)
    assert "remind" not in done
    pass_time(2 * HOUR)
    assert (fresh(process).status, "remind" in done) == ("completed", True)


def test_a_deadline_that_was_claimed_rests_too() -> None:
    process = finished(processes.Patient)
    paused(process)
    late = visit(process, "reminded")
    claimed = {"remaining": None, "wake_at": timezone.now()}
    StepRun.objects.filter(pk=late.pk).update(**claimed)
    drain()
    assert (fresh(late).status, late.wake_at, late.owner) == ("waiting", None, "")
    resumed(process)
    assert "remind" in done


def test_the_pause_between_attempts_goes_on_where_it_was(pauses: list[float]) -> None:
    faults["apply"] = ConnectionError("no line")
    process = finished(processes.Visa)
    assert process.status == "retrying"
    paused(process)
    faults.clear()
    nothing_starts(process)
    run = visit(process, "apply")
    assert run.remaining is not None
    assert run.remaining <= timedelta(seconds=pauses[-1])
    assert (run.status, run.attempt) == ("retrying", 1)

    did(unpause, process, True)
    assert process.status == "retrying"
    pass_time(timedelta(seconds=pauses[-1]))
    assert (fresh(process).status, done) == ("waiting", ["apply"])


def test_events_are_taken_in_order_afterwards() -> None:
    process = finished(processes.Countries, "Ito", 3)
    paused(process)
    for number in range(3):
        name = f"visa {number}"
        send_event(VisaGranted(name), id=name, source="c", process_id=process.pk)
    nothing_starts(process)
    assert set(InboxEvent.objects.values_list("verdict", flat=True)) == {"parked"}

    assert resumed(process) == "completed"
    told = results(process)
    assert [told[f"visa_{n + 1}"]["number"] for n in range(3)] == [
        f"visa {n}" for n in range(3)
    ]


# Failures


def test_a_step_that_fails_for_good_meanwhile_leaves_the_process_paused() -> None:
    process = launch(processes.Trip)
    steps.during["flight"] = partial(pausing, process, BAD)
    go_on(process)
    assert (process.status, statuses(process)["flight"]) == ("paused", "failed")
    assert Incident.objects.open().count() == 1

    did(unpause, process, True)
    assert process.status == "failed"
    steps.during.clear()
    did(retry, process)
    assert go_on(process).status == "waiting"


def test_what_a_failure_cancelled_while_it_rested_is_brought_back() -> None:
    process = launch(processes.Hasty)
    steps.during["flight"] = partial(pausing, process, BAD)
    go_on(process)
    assert statuses(process)["flight"] == "failed"
    assert "cancelled" in statuses(process).values()
    assert resumed(process) == "failed"
    steps.during.clear()
    did(retry, process)
    go_on(process)
    answered(process, "approve")
    assert go_on(process).status == "completed"


def test_a_failure_that_is_undone_is_undone_after_the_pause() -> None:
    process = launch(apps.Line)
    apps.during["end"] = partial(pausing, process, BAD)
    go_on(process)
    assert (process.status, apps.done) == ("paused", ["begin", "end"])
    nothing_starts(process)
    assert (resumed(process), apps.done[2:]) == ("cancelled", ["take_back"])


# Actions meanwhile


def test_cancelling_ends_the_pause_and_what_is_being_undone_is_not_paused() -> None:
    process = finished(processes.Undoable)
    paused(process)
    did(cancel, process)
    refused("is being undone", pause, process, True)
    go_on(process)

    assert (process.status, process.paused_at, len(undone)) == ("cancelled", None, 2)


def test_what_people_do_with_its_steps_meanwhile_leads_on_afterwards() -> None:
    decided, redone, taken_back = (finished(processes.Trip, n, 2) for n in "ABC")
    skipped = launch(processes.Visa)
    everything = (decided, redone, taken_back, skipped)
    for process in everything:
        paused(process)
    answered(decided, "approve")
    did(redo, redone, "flight")
    did(resume, taken_back, 1)
    did(skip, skipped, visit(skipped, "apply").pk, "skipped")
    assert statuses(decided)["approve"] == "done"
    for process in everything:
        nothing_starts(process)

    found = []
    for process in everything:
        done.clear()
        found.append((resumed(process), sorted(done)))
    assert found == [
        ("completed", ["deliver"]),
        ("waiting", ["flight"]),
        ("waiting", ["flight", "hotel", "invoice", "plan"]),
        ("waiting", []),
    ]


def test_what_had_failed_is_retried_afterwards_and_restarted_when_it_goes_on() -> None:
    faults["flight"] = BAD
    process, other = finished(processes.Trip), finished(processes.Trip, "Sato", 2)
    assert process.status == other.status == "failed"
    paused(process)
    paused(other)
    faults.clear()
    did(retry, process)
    assert not process.incidents.open().exists()
    nothing_starts(process)
    assert (resumed(process), statuses(process)["flight"]) == ("waiting", "done")

    given = {"name": "Sato", "nights": 2}
    refused("paused: resume it first", restart, other, given)
    did(unpause, other, True)
    did(restart, other, given)
    drain()
    assert not other.step_runs.filter(finished_at=None).exists()


# Sub-processes


def test_sub_processes_are_paused_and_resumed_with_it() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    assert paused(tour).after["paused_with_it"] == 1
    assert fresh(child).status == "paused"
    answered(child, "look")
    nothing_starts(tour)
    assert fresh(child).status == "paused"

    assert did(unpause, tour, True).after["resumed_with_it"] == 1
    go_on(tour)
    assert stand(child, tour) == ["completed", "completed"]


def test_a_sub_process_can_stay_paused_and_one_that_goes_on_is_waited_for() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    paused(tour)
    did(unpause, tour, False)
    assert stand(tour, child) == ["waiting", "paused"]
    assert resumed(child) == "waiting"

    paused(tour, children=False)
    answered(child, "look")
    assert go_on(child).status == "completed"
    nothing_starts(tour)
    assert resumed(tour) == "completed"
    assert results(tour)["leg"] == "arrived after 2 days to Kobe"


def test_three_deep_what_is_below_one_that_is_paused_already_is_paused_too() -> None:
    top, middle, bottom = family = family_of_three()
    paused(middle, children=False)
    assert fresh(bottom).status == "waiting"
    assert did(pause, top, True).after["paused_with_it"] == 1
    assert stand(*family) == ["paused"] * 3

    did(unpause, middle, False)
    assert stand(*family) == ["paused", "waiting", "paused"]
    assert did(unpause, top, True).after["resumed_with_it"] == 1
    assert stand(*family) == ["waiting"] * 3


def test_a_part_that_is_being_undone_is_not_paused_with_its_whole() -> None:
    top, _, last = family_of_three()
    did(cancel, last)
    assert did(pause, top, True).after["paused_with_it"] == 1
    go_on(last)
    assert (last.status, apps.done) == ("cancelled", ["begin", "begin", "take_back"])


def test_cancelling_a_paused_whole_undoes_its_paused_parts() -> None:
    family = family_of_three()
    paused(family[0])
    did(cancel, family[0])
    go_on(family[0])

    assert stand(*family) == ["cancelled"] * 3
    assert apps.done.count("take_back") == 1
    assert {process.paused_at for process in family} == {None}


def test_a_step_that_was_claimed_just_before_starts_no_sub_process() -> None:
    process = launch(apps.Middle)
    slice_ = WorkerSlice("default", "worker")
    [claimed] = step_runs.claim("default", "worker", 1, 30, **CLAIMED)
    session = Session.of(claimed.work, slice_, QuickResults(slice_.held))
    assert session is not None
    paused(process)
    session.go_through(claimed.work, time.monotonic())

    run = visit(process, "bottom")
    assert (run.status, run.owner, run.attempt, run.child) == ("ready", "", 0, None)
    nothing_starts(process)
    resumed(process)
    assert child_of(process).status == "waiting"


# What cannot be done, for many rows


def test_many_processes_take_as_many_queries_as_one(operator: User) -> None:
    rows = [launch(apps.Bottom) for _ in range(12)]
    drain()
    for process in rows[::3]:
        did(pause, process, True)
    for process in rows[1::3]:
        did(cancel, process)  # and so is being undone
    stand(*rows)
    at_once = refusals(rows, operator)  # what the operator may do is read once

    singly = [queries(partial(refusals, [row], operator)) for row in rows]
    assert queries(partial(refusals, rows, operator)) == max(singly)
    assert at_once == {row.pk: refusals([row], operator)[row.pk] for row in rows}
    said = {words["pause"] for words in at_once.values()}
    assert said == {"", "It is paused already", UNDOING}


# Races


@pytest.mark.django_db(transaction=True)
def test_workers_and_pauses_at_the_same_moment_leave_nothing_behind() -> None:
    for _ in range(5):
        process = launch(apps.Narrow, 8)
        results_ = together(drain, partial(pause, process.pk, True, request=asked()))
        assert [str(e) for e in raised(results_)] in ([], ["The process has ended"])
        drain()
        if fresh(process).finished_at is None:
            nothing_starts(process)
            together(drain, partial(unpause, process.pk, True, request=asked()))
            go_on(process)
        assert (process.status, results(process)["total"]) == ("completed", 140)


@pytest.mark.django_db(transaction=True)
def test_a_part_that_ends_while_its_whole_is_paused_and_resumed() -> None:
    for _ in range(4):
        family = family_of_three()
        answered(family[-1], "sure")
        for operation, others in ((pause, [drain, drain]), (unpause, [drain])):
            press = partial(operation, family[0].pk, True, request=asked())
            wrong = raised(together(press, *others))
            assert all(isinstance(error, OperationRefused) for error in wrong)
            drain()
        # On a crowded machine the database may cut a worker off; what it held is taken up when its lease is over.
        until = time.monotonic() + PATIENCE_SECONDS
        while go_on(family[0]).finished_at is None and time.monotonic() < until:
            time.sleep(0.2)
        assert stand(*family) == ["completed"] * 3


# Real workers


@pytest.mark.django_db(transaction=True)
def test_a_step_whose_worker_is_killed_rests_until_it_goes_on(start: Start) -> None:
    Group.objects.create(name=apps.HOLD)
    process = launch(apps.Held)
    workers = start(2, APPS="tests.apps.pausing", QUEUES="default")

    def run_is(**expected: Any) -> Callable[[], bool]:
        return process.step_runs.filter(node="hold", **expected).exists

    wait_for(run_is(status="running"), 30)
    paused(process)
    for pid in workers.pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(run_is(owner="", wake_at=None, remaining__isnull=False), 30)
    assert fresh(process).status == "paused"

    Group.objects.all().delete()
    did(unpause, process, True)
    wait_for(lambda: fresh(process).status == "completed", 30)
