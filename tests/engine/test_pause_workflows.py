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
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import (
    cancel,
    decide,
    escalate,
    pause,
    redo,
    refusals,
    restart,
    resume,
    retry,
    skip,
    unpause,
)
from orchestrator.engine.operations.circumstances import UNDOING
from orchestrator.engine.steps.quick_results import QuickResults
from orchestrator.engine.steps.running import CLAIMED
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import OperationRefused
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Status, StepRun
from orchestrator.testing import pass_time
from tests.apps.compensation import processes, steps
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.compensation.steps import VisaGranted
from tests.apps.patterns.desk import (
    finished,
    go_on,
    launch,
    results,
    statuses,
    visit,
)
from tests.apps.pausing import processes as apps
from tests.apps.process_managers.fixtures import known as known_too
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.patience import wait_for
from tests.services.workers import Workers

__all__ = ["known", "trips"]

PATIENCE_SECONDS = 30
"""Three leases."""

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
BAD = Permanent("no line")
QUICK = {
    "PROCESSION_APPS": "tests.apps.pausing",
    "PROCESSION_BACKOFF_SECONDS": "0.1",
    "PROCESSION_SWEEP_SECONDS": "0.2",
}


@pytest.fixture(scope="module", autouse=True)
def more() -> Iterator[None]:
    """Let the running code have the workflows that are paused from within."""
    yield from known_too(*apps.WORKFLOWS)


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    apps.done.clear()
    apps.during.clear()


def paused(process: ProcessInstance, children: bool = True) -> None:
    pause(process.pk, children, request=asked())
    process.refresh_from_db()
    assert process.status == Status.PAUSED


def resumed(process: ProcessInstance, children: bool = True) -> None:
    """Resume a process and run what is ready."""
    unpause(process.pk, children, request=asked())
    go_on(process)


def pausing(
    process: ProcessInstance, error: Exception | None = None
) -> Callable[[], object]:
    """Return what pauses a process from within one of its steps, as when that had been claimed just before."""

    def call() -> None:
        pause(process.pk, True, request=asked())
        if error is not None:
            raise error

    return call


def nothing_starts(process: ProcessInstance) -> None:
    """Look whether time or workers move it."""
    before, was_done = process.revision, list(done)
    pass_time(30 * DAY)
    go_on(process)
    assert (process.revision, process.status, done) == (before, "paused", was_done)
    assert not process.step_runs.filter(wake_at__isnull=False).exists()


def generations(process: ProcessInstance) -> list[ProcessInstance]:
    """Return a process, its sub-process, and so on."""
    found = [process]
    while part := found[-1].children.first():
        found.append(part)
    return found


def again(family: list[ProcessInstance]) -> list[ProcessInstance]:
    """Return them as they stand now."""
    for process in family:
        process.refresh_from_db()
    return family


def only_refused(results: list[Any]) -> bool:
    """Whether nothing went wrong but that an action came too late."""
    return all(isinstance(error, OperationRefused) for error in raised(results))


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

    resumed(process)
    assert (done, process.status) == (["apply"], "waiting")
    resumed(careful)
    assert careful.status == "completed"


def test_a_running_step_settles_and_its_successors_rest() -> None:
    process = launch(processes.Undoable)
    steps.during["flight"] = pausing(process)
    go_on(process)

    assert process.status == "paused"
    assert "flight" in done
    assert statuses(process)["flight"] == "done"
    assert "invoice" not in done
    process.refresh_from_db()
    nothing_starts(process)
    resumed(process)
    assert statuses(process)["approve"] == "waiting"
    assert process.status == "waiting"


def test_a_join_waits_for_the_end_of_the_pause() -> None:
    process = launch(processes.Strict)
    steps.during["flight"] = pausing(process)
    go_on(process)
    assert "rest" not in done
    resumed(process)
    assert (process.status, done.count("rest")) == ("completed", 1)


@pytest.mark.django_db(transaction=True)
def test_a_process_that_ends_meanwhile_is_paused_no_more() -> None:
    process = launch(apps.Line)
    apps.during["end"] = pausing(process)
    go_on(process)

    assert (process.status, process.paused_at) == ("completed", None)
    with pytest.raises(OperationRefused, match="The process has ended"):
        unpause(process.pk, True, request=asked())


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
    apps.during[f"square {last}"] = pausing(process)
    go_on(process)
    begun = [name for name in apps.done if name.startswith("square")]
    settled = process.step_runs.filter(kind="item", status="done").count()

    assert last <= settled < elements
    assert settled == len(begun)
    nothing_starts(process)
    apps.during.clear()
    resumed(process)
    assert (process.status, results(process)["total"]) == ("completed", total)
    assert sorted(apps.done) == sorted(set(apps.done))


def test_pausing_many_elements_takes_few_statements() -> None:
    def statements(process: ProcessInstance) -> list[int]:
        counts = []
        for operation in (pause, unpause):
            with CaptureQueriesContext(connection) as queries:
                operation(process.pk, True, request=asked())
            counts.append(len(queries))
        return counts

    few, many = launch(apps.Squares, 2), launch(apps.Squares, 400)
    for process in (few, many):
        drain(stop=iter([False, *[True] * 100]).__next__)
        assert process.step_runs.filter(kind="item").exists()
    statements(few)  # what the operator may do is read once
    assert statements(many) == statements(few)
    assert max(statements(many)) < 20


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
    assert go_on(process).status == "completed"
    assert "remind" in done


def test_a_deadline_that_was_claimed_rests_too() -> None:
    process = finished(processes.Patient)
    paused(process)
    StepRun.objects.filter(pk=visit(process, "reminded").pk).update(
        remaining=None, wake_at=timezone.now()
    )
    drain()
    run = visit(process, "reminded")
    assert (run.status, run.wake_at, run.owner) == ("waiting", None, "")
    resumed(process)
    assert "remind" in done


def test_the_pause_before_another_attempt_goes_on_with_what_was_left(
    pauses: list[float],
) -> None:
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

    unpause(process.pk, True, request=asked())
    process.refresh_from_db()
    assert process.status == "retrying"
    pass_time(timedelta(seconds=pauses[-1]))
    assert go_on(process).status == "waiting"
    assert done == ["apply"]


def test_events_are_taken_in_order_afterwards() -> None:
    process = finished(processes.Countries, "Ito", 3)
    paused(process)
    for number in range(3):
        name = f"visa {number}"
        send_event(VisaGranted(name), id=name, source="c", process_id=process.pk)
    nothing_starts(process)
    assert set(InboxEvent.objects.values_list("verdict", flat=True)) == {"parked"}

    resumed(process)
    assert process.status == "completed"
    told = results(process)
    assert [told[f"visa_{n + 1}"] for n in range(3)] == [
        {"number": f"visa {n}"} for n in range(3)
    ]


# Failures


def test_a_step_that_fails_for_good_meanwhile_leaves_the_process_paused() -> None:
    process = launch(processes.Trip)

    steps.during["flight"] = pausing(process, BAD)
    go_on(process)
    assert process.status == "paused"
    assert statuses(process)["flight"] == "failed"
    assert Incident.objects.open().count() == 1

    unpause(process.pk, True, request=asked())
    process.refresh_from_db()
    assert process.status == "failed"
    steps.during.clear()
    retry(process.pk, request=asked())
    assert go_on(process).status == "waiting"


def test_what_a_failure_cancelled_while_it_rested_is_brought_back() -> None:
    process = launch(processes.Hasty)

    steps.during["flight"] = pausing(process, BAD)
    go_on(process)
    assert statuses(process)["flight"] == "failed"
    assert "cancelled" in statuses(process).values()
    resumed(process)
    assert process.status == "failed"
    steps.during.clear()
    retry(process.pk, request=asked())
    go_on(process)
    decide(process.pk, visit(process, "approve").pk, "yes", request=asked())
    assert go_on(process).status == "completed"


def test_a_failure_that_is_undone_is_undone_after_the_pause() -> None:
    process = launch(apps.Line)

    apps.during["end"] = pausing(process, BAD)
    go_on(process)
    assert (process.status, apps.done) == ("paused", ["begin", "end"])
    nothing_starts(process)
    assert apps.done == ["begin", "end"]
    resumed(process)
    assert (process.status, apps.done[2:]) == ("cancelled", ["take_back"])


# Actions meanwhile


def test_cancelling_ends_the_pause_and_what_is_being_undone_is_not_paused() -> None:
    process = finished(processes.Undoable)
    paused(process)
    cancel(process.pk, request=asked())
    with pytest.raises(OperationRefused, match="is being undone"):
        pause(process.pk, True, request=asked())
    go_on(process)

    assert (process.status, process.paused_at, len(undone)) == ("cancelled", None, 2)


def test_what_people_do_with_its_steps_meanwhile_leads_on_afterwards() -> None:
    decided, redone, taken_back = (finished(processes.Trip, n, 2) for n in "ABC")
    skipped = launch(processes.Visa)
    for process in (decided, redone, taken_back, skipped):
        paused(process)
    decide(decided.pk, visit(decided, "approve").pk, "yes", request=asked())
    redo(redone.pk, "flight", request=asked())
    resume(taken_back.pk, 1, request=asked())
    skip(skipped.pk, visit(skipped, "apply").pk, "skipped", request=asked())
    assert statuses(decided)["approve"] == "done"
    done.clear()
    for process in (decided, redone, taken_back, skipped):
        process.refresh_from_db()
        nothing_starts(process)

    found = []
    for process in (decided, redone, taken_back, skipped):
        done.clear()
        resumed(process)
        found.append((process.status, sorted(done)))
    assert found == [
        ("completed", ["deliver"]),
        ("waiting", ["flight"]),
        ("waiting", ["flight", "hotel", "invoice", "plan"]),
        ("waiting", []),
    ]


def test_what_failed_before_is_retried_afterwards_and_restarted_when_it_goes_on() -> (
    None
):
    faults["flight"] = BAD
    process, other = finished(processes.Trip), finished(processes.Trip, "Sato", 2)
    assert process.status == other.status == "failed"
    paused(process)
    paused(other)
    faults.clear()
    retry(process.pk, request=asked())
    process.refresh_from_db()
    assert not process.incidents.open().exists()
    nothing_starts(process)
    resumed(process)
    assert (process.status, statuses(process)["flight"]) == ("waiting", "done")

    given = {"name": "Sato", "nights": 2}
    with pytest.raises(OperationRefused, match="paused: resume it first"):
        restart(other.pk, given, request=asked())
    unpause(other.pk, True, request=asked())
    restart(other.pk, given, request=asked())
    drain()
    assert other.step_runs.filter(finished_at=None).count() == 0


def test_escalating_leaves_it_paused() -> None:
    process = finished(processes.Trip)
    paused(process)
    escalate(process.pk, request=asked())
    process.refresh_from_db()
    assert (process.status, process.escalation_level) == ("paused", 1)
    nothing_starts(process)


# Sub-processes


def test_sub_processes_are_paused_and_resumed_with_it() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    action = pause(tour.pk, True, request=asked())
    child.refresh_from_db()
    assert (child.status, action.after["paused_with_it"]) == ("paused", 1)
    decide(child.pk, visit(child, "look").pk, "yes", request=asked())
    tour.refresh_from_db()
    nothing_starts(tour)
    child.refresh_from_db()
    assert child.status == "paused"

    action = unpause(tour.pk, True, request=asked())
    assert action.after["resumed_with_it"] == 1
    go_on(child)
    go_on(tour)
    assert (child.status, tour.status) == ("completed", "completed")


def test_a_sub_process_can_stay_paused_and_one_that_goes_on_is_waited_for() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    paused(tour)
    unpause(tour.pk, False, request=asked())
    tour.refresh_from_db()
    child.refresh_from_db()
    assert (tour.status, child.status) == ("waiting", "paused")
    resumed(child)
    assert child.status == "waiting"

    paused(tour, children=False)
    decide(child.pk, visit(child, "look").pk, "yes", request=asked())
    go_on(child)
    assert child.status == "completed"
    tour.refresh_from_db()
    nothing_starts(tour)
    resumed(tour)
    assert tour.status == "completed"
    assert results(tour)["leg"] == "arrived after 2 days to Kobe"


def test_three_deep_what_is_below_one_that_is_paused_already_is_paused_too() -> None:
    family = generations(finished(apps.Top))
    assert len(family) == 3
    paused(family[1], children=False)
    assert again(family)[2].status == "waiting"
    action = pause(family[0].pk, True, request=asked())
    assert action.after["paused_with_it"] == 1
    assert {process.status for process in again(family)} == {"paused"}

    unpause(family[1].pk, False, request=asked())  # one in the middle
    assert [p.status for p in again(family)] == ["paused", "waiting", "paused"]
    action = unpause(family[0].pk, True, request=asked())
    assert action.after["resumed_with_it"] == 1
    assert {process.status for process in again(family)} == {"waiting"}


def test_a_part_that_is_being_undone_is_not_paused_with_its_whole() -> None:
    top, _, last = generations(finished(apps.Top))
    cancel(last.pk, request=asked())
    action = pause(top.pk, True, request=asked())
    assert action.after["paused_with_it"] == 1
    go_on(last)
    assert (last.status, apps.done) == ("cancelled", ["begin", "begin", "take_back"])


def test_cancelling_a_paused_whole_undoes_its_paused_parts() -> None:
    family = generations(finished(apps.Top))
    paused(family[0])
    cancel(family[0].pk, request=asked())
    go_on(family[0])

    assert [process.status for process in again(family)] == ["cancelled"] * 3
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


def told(processes: list[ProcessInstance], user: User) -> tuple[Any, int]:
    """Return what cannot be done with these processes, and how many queries that took."""
    with CaptureQueriesContext(connection) as queries:
        found = refusals(processes, user)
    return found, len(queries)


def test_many_processes_take_as_many_queries_as_one(operator: User) -> None:
    for _ in range(12):
        launch(apps.Bottom)
    drain()
    rows = list(ProcessInstance.objects.order_by("pk"))
    for process in rows[::3]:
        pause(process.pk, True, request=asked())
    for process in rows[1::3]:
        cancel(process.pk, request=asked())  # and so is being undone
    rows = list(ProcessInstance.objects.order_by("pk"))
    told(rows, operator)  # what the operator may do is read once

    singly = [told([row], operator) for row in rows]
    at_once, queries = told(rows, operator)
    assert len(at_once) == 12
    assert queries == max(number for _, number in singly)
    assert at_once == {pk: words for found, _ in singly for pk, words in found.items()}
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
        process.refresh_from_db()
        if process.finished_at is None:
            nothing_starts(process)
            together(drain, partial(unpause, process.pk, True, request=asked()))
            go_on(process)
        assert (process.status, results(process)["total"]) == ("completed", 140)


@pytest.mark.django_db(transaction=True)
def test_a_part_that_ends_while_its_whole_is_paused_and_resumed() -> None:
    for _ in range(4):
        family = generations(finished(apps.Top))
        last = family[-1]
        decide(last.pk, visit(last, "sure").pk, "yes", request=asked())
        press = partial(pause, family[0].pk, True, request=asked())
        assert only_refused(together(drain, press, drain))
        drain()
        press = partial(unpause, family[0].pk, True, request=asked())
        assert only_refused(together(drain, press))
        # On a crowded machine the database may cut a worker off; what it held is taken up when its lease is over.
        until = time.monotonic() + PATIENCE_SECONDS
        while go_on(family[0]).finished_at is None and time.monotonic() < until:
            time.sleep(0.2)
        assert [process.status for process in again(family)] == ["completed"] * 3


# Real workers


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[Workers]:
    """Return two workers who know these workflows; the test starts them."""
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    workers = Workers(processes=2)
    yield workers
    workers.stop()


@pytest.mark.django_db(transaction=True)
def test_a_step_whose_worker_is_killed_meanwhile_rests_until_it_goes_on(
    hands: Workers,
) -> None:
    Group.objects.create(name=apps.HOLD)
    process = launch(apps.Held)
    hands.start()

    def run_is(**expected: Any) -> Callable[[], bool]:
        return process.step_runs.filter(node="hold", **expected).exists

    wait_for(run_is(status="running"), 30)
    paused(process)
    for pid in hands.pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(run_is(owner="", wake_at=None, remaining__isnull=False), 30)
    process.refresh_from_db()
    assert process.status == "paused"

    Group.objects.all().delete()
    unpause(process.pk, True, request=asked())
    completed = ProcessInstance.objects.filter(pk=process.pk, status="completed")
    wait_for(completed.exists, 30)
