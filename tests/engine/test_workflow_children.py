"""Sub-processes: linked both ways, their results, failures and ends, and what is cancelled with what."""

from functools import partial
from typing import Any

import pytest

from orchestrator import Permanent, start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import cancel, decide, redo, retry, skip
from orchestrator.engine.steps import subprocesses
from orchestrator.models import Cause, CauseKind, Incident, ProcessInstance, StepRun
from tests.apps.compensation import journal, processes
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults
from tests.apps.compensation.processes import Way
from tests.apps.patterns.desk import (
    complaint,
    finished,
    go_on,
    insist,
    launch,
    results,
    statuses,
    visit,
    visits,
)
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

BAD = Permanent("no line")


def child_of(process: ProcessInstance) -> ProcessInstance:
    """Return the sub-process that was started last."""
    child: ProcessInstance = ProcessInstance.objects.filter(parent=process).latest("pk")
    return child


def answered(process: ProcessInstance) -> ProcessInstance:
    run = process.step_runs.get(kind="ask", finished_at=None)
    decide(process.pk, run.pk, "yes", request=asked())
    return go_on(process)


# Results


def test_a_sub_process_is_linked_both_ways_and_its_result_is_that_of_the_step() -> None:
    tour = finished(processes.Tour)
    child, run = child_of(tour), visit(tour, "leg")

    assert (run.child, run.kind, run.status) == (child, "run", "waiting")
    assert (child.name, child.correlation_key) == ("leg", "Kobe")
    assert child.data == {"city": "Kobe", "days": 2}
    assert (tour.status, child.status) == ("waiting", "waiting")

    # A worker that is called too early waits on.
    StepRun.objects.filter(pk=run.pk).update(wake_at=tour.started_at)
    tour = go_on(tour)
    run.refresh_from_db()
    assert (tour.status, run.status, run.wake_at) == ("waiting", "waiting", None)

    answered(child)
    tour = go_on(tour)
    assert tour.status == "completed"
    assert results(tour)["leg"] == "arrived after 2 days to Kobe"
    assert results(tour)["pack"] == "packed for arrived after 2 days to Kobe"
    assert tour.step_runs.filter(node="leg").count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_end_is_heard_by_one_of_many_workers() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    decide(child.pk, visit(child, "look").pk, "yes", request=asked())
    assert not raised(together(drain, drain, drain))

    assert go_on(tour).status == "completed"
    assert done.count("pack") == 1


# Failures


def test_a_failure_inside_fails_the_step_until_somebody_retries_it() -> None:
    faults["drive"] = ConnectionError("no line")
    tour = insist(finished(processes.Tour))
    child = child_of(tour)
    assert (child.status, tour.status) == ("failed", "failed")
    assert (complaint(child).step, complaint(tour).step) == ("drive", "leg")
    faults.clear()
    retry(child.pk, request=asked())
    answered(go_on(child))

    assert go_on(tour).status == "completed"
    assert not Incident.objects.open().exists()


def test_one_that_declines_is_undone_and_so_is_its_parent() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    faults["arrive"] = BAD
    child = answered(child)
    tour = go_on(tour)

    assert (child.status, tour.status) == ("cancelled", "cancelled")
    assert journal.undone == ["back from 2 days to Kobe"]
    assert not Incident.objects.open().exists()


def test_bad_input_is_an_incident_of_the_step_that_starts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(way: Way) -> None:
        raise ValueError("no such city")

    with monkeypatch.context() as patch:
        patch.setattr(Way, "__post_init__", refuse, raising=False)
        patch.setattr(Way, "__init__", lambda self, **given: refuse(self))
        tour = finished(processes.Tour)
    assert (tour.status, ProcessInstance.objects.count()) == ("failed", 1)
    assert "the input of leg: no such city" in complaint(tour).message
    assert complaint(tour).step == "leg"
    retry(tour.pk, request=asked())

    assert go_on(tour).status == "waiting"


def test_input_of_another_type_is_such_an_incident_too() -> None:
    faults["days"] = ConnectionError("no line")
    tour = insist(finished(processes.Tour))
    StepRun.objects.filter(node="city").update(result=[1])  # and the checksum is wrong
    faults.clear()
    skip(tour.pk, visit(tour, "days").pk, 2, request=asked())
    tour = go_on(tour)
    assert [run.round for run in visits(tour, "city")] == [1, 2]  # redone by itself
    assert child_of(tour).data["city"] == "Kobe"


def test_a_key_that_another_process_has_is_waited_for() -> None:
    start_process(processes.Leg, Way("Kobe", 1), id="1")
    other = ProcessInstance.objects.get()
    tour = finished(processes.Tour)
    run = visit(tour, "leg")
    assert (tour.status, run.status, run.child) == ("retrying", "retrying", None)
    assert "already a live leg with the key 'Kobe'" in run.error
    cancel(other.pk, request=asked())
    go_on(other)
    tour = insist(tour, 1)

    assert (tour.status, child_of(tour).status) == ("waiting", "waiting")


# Cancelled


def test_with_a_process_its_sub_processes_are_cancelled_and_people_read_why() -> None:
    tour = finished(processes.Tour)
    cancel(tour.pk, request=asked())
    tour, child = go_on(tour), child_of(tour)

    assert (tour.status, child.status) == ("cancelled", "cancelled")
    assert journal.undone == ["back from 2 days to Kobe"]
    assert not StepRun.objects.filter(finished_at=None).exists()
    moved = child.checkpoints.filter(cause__startswith="parent:").get()
    assert moved.moved_by == Cause.of(CauseKind.PARENT, visit(tour, "leg").pk)
    assert moved.said == "Its parent process waits for it no more"


def test_a_cancelled_sub_process_fails_the_step_that_waits_for_it() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    cancel(child.pk, request=asked())
    tour = go_on(tour)

    assert (tour.status, statuses(tour)["leg"]) == ("failed", "failed")
    assert f"the sub-process leg {child.pk} was cancelled" in complaint(tour).message
    skip(tour.pk, visit(tour, "leg").pk, "by train", request=asked())
    tour = go_on(tour)
    assert (tour.status, results(tour)["pack"]) == ("completed", "packed for by train")


def test_a_step_that_is_skipped_cancels_its_sub_process() -> None:
    tour = finished(processes.Tour)
    skip(tour.pk, visit(tour, "leg").pk, "by train", request=asked())
    tour = go_on(tour)

    assert (tour.status, child_of(tour).status) == ("completed", "cancelled")
    assert statuses(tour)["leg"] == "skipped"


def test_a_branch_that_is_given_up_cancels_its_sub_process() -> None:
    process = launch(processes.Detour)
    faults["rest"] = ConnectionError("not tired")
    process = go_on(process)
    assert child_of(process).status == "waiting"
    faults.clear()
    process = insist(process, 1)

    assert (process.status, results(process)["home"]) == ("completed", "Ito")
    assert statuses(process)["leg"] == "cancelled"
    assert go_on(child_of(process)).status == "cancelled"


def test_when_parent_and_child_are_cancelled_at_once_both_end() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    cancel(child.pk, request=asked())
    cancel(tour.pk, request=asked())
    tour, child = go_on(tour), go_on(child)

    assert (tour.status, child.status) == ("cancelled", "cancelled")
    assert journal.undone == ["back from 2 days to Kobe"]


@pytest.mark.django_db(transaction=True)
def test_a_sub_process_that_ends_while_its_parent_is_cancelled() -> None:
    for number in range(4):
        journal.forget()
        tour = go_on(launch(processes.Tour, f"P-{number}", 2))
        child = child_of(tour)
        decide(child.pk, visit(child, "look").pk, "yes", request=asked())
        tour.refresh_from_db()
        together(drain, partial(cancel, tour.pk, request=asked()))
        tour, child = go_on(tour), go_on(child)

        assert tour.status in ("cancelled", "completed")
        assert child.status in ("cancelled", "completed")
        assert not StepRun.objects.filter(finished_at=None).exists()


# Redone


def test_a_sub_process_is_redone_as_a_new_one() -> None:
    faults["pack"] = ConnectionError("no line")
    tour = finished(processes.Tour)
    first = child_of(tour)
    answered(first)
    tour = go_on(tour)
    assert tour.status == "retrying"
    redo(tour.pk, "leg", request=asked())
    tour = go_on(tour)
    assert child_of(tour) != first
    answered(child_of(tour))
    faults.clear()
    tour = insist(tour, 1)

    assert tour.status == "completed"
    assert [run.round for run in visits(tour, "leg")] == [1, 2]


def test_a_result_that_was_broken_inside_is_an_incident_of_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    run = visit(child, "look")
    decide(child.pk, run.pk, "yes", request=asked())
    original = subprocesses.result_of

    def broken(process: ProcessInstance) -> Any:
        process.step_runs.filter(node="arrive").update(result="Rome")
        return original(process)

    with monkeypatch.context() as patch:
        patch.setattr(subprocesses, "result_of", broken)
        tour = go_on(tour)
    assert tour.status == "failed"
    said = f"the sub-process leg {child.pk} has lost its result: the stored result of arrive"
    assert said in complaint(tour).message
    skip(tour.pk, visit(tour, "leg").pk, "arrived", request=asked())
    assert go_on(tour).status == "completed"
    child.step_runs.filter(node="arrive").update(
        result="arrived after 2 days to Kobe"
    )  # what must hold always is asked for now
