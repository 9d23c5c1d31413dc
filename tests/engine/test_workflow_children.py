"""Sub-processes: linked both ways, their results, failures and ends, and what is cancelled with what."""

from typing import Any

import pytest

from orchestrator import start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel, decide, redo, retry
from orchestrator.engine.steps import subprocesses
from orchestrator.models import Cause, CauseKind, ProcessInstance, StepRun
from tests.apps.compensation import journal, processes
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import faults
from tests.apps.compensation.processes import Way
from tests.apps.patterns.desk import (
    complaint,
    finished,
    go_on,
    insist,
    results,
    statuses,
    visit,
    visits,
)
from tests.apps.process_managers.together import together
from tests.services.asking import asked
from tests.services.operated import decided, operated, press, skipped, troubled

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]


def child_of(process: ProcessInstance) -> ProcessInstance:
    """Return the sub-process that was started last."""
    child: ProcessInstance = process.children.latest("pk")
    return child


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
    assert go_on(tour).status == "waiting"
    run = visit(tour, "leg")
    assert (run.status, run.wake_at) == ("waiting", None)

    decided(child)
    assert go_on(tour).status == "completed"
    found, arrived = results(tour), "arrived after 2 days to Kobe"
    assert (found["leg"], found["pack"]) == (arrived, f"packed for {arrived}")
    assert visit(tour, "leg").child == child


# Failures


def test_bad_input_is_an_incident_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(way: Way) -> None:
        raise ValueError("no such city")

    with monkeypatch.context() as patch:
        patch.setattr(Way, "__post_init__", refuse, raising=False)
        patch.setattr(Way, "__init__", lambda self, **given: refuse(self))
        tour = finished(processes.Tour)
    assert (tour.status, ProcessInstance.objects.count()) == ("failed", 1)
    assert "the input of leg: no such city" in complaint(tour).message
    assert complaint(tour).step == "leg"
    assert operated(retry, tour).status == "waiting"


def test_input_of_another_type_is_such_an_incident_too() -> None:
    tour = insist(troubled(processes.Tour, days=ConnectionError("no line")))
    StepRun.objects.filter(node="city").update(result=[1])  # and the checksum is wrong
    faults.clear()
    skipped(tour, "days", 2)
    assert [run.round for run in visits(tour, "city")] == [1, 2]  # redone by itself
    assert child_of(tour).data["city"] == "Kobe"


def test_a_key_that_another_process_has_is_waited_for() -> None:
    start_process(processes.Leg, Way("Kobe", 1), id="1")
    other = ProcessInstance.objects.get()
    tour = finished(processes.Tour)
    run = visit(tour, "leg")
    assert (tour.status, run.status, run.child) == ("retrying", "retrying", None)
    assert "already a live leg with the key 'Kobe'" in run.error
    operated(cancel, other)

    assert insist(tour, 1).status == child_of(tour).status == "waiting"


# Cancelled


def test_with_a_process_its_sub_processes_are_cancelled_and_people_read_why() -> None:
    tour = operated(cancel, finished(processes.Tour))
    child = child_of(tour)

    assert (tour.status, child.status) == ("cancelled", "cancelled")
    assert journal.undone == ["back from 2 days to Kobe"]
    assert not StepRun.objects.filter(finished_at=None).exists()
    moved = child.checkpoints.filter(cause__startswith="parent:").get()
    assert moved.moved_by == Cause.of(CauseKind.PARENT, visit(tour, "leg").pk)
    assert moved.said == "Its parent process waits for it no more"


def test_a_cancelled_sub_process_fails_the_step_that_waits_for_it() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    operated(cancel, child)

    assert (go_on(tour).status, statuses(tour)["leg"]) == ("failed", "failed")
    assert f"the sub-process leg {child.pk} was cancelled" in complaint(tour).message
    skipped(tour, "leg", "by train")
    assert (tour.status, results(tour)["pack"]) == ("completed", "packed for by train")


def test_a_step_that_is_skipped_cancels_its_sub_process() -> None:
    tour = skipped(finished(processes.Tour), "leg", "by train")

    assert (tour.status, child_of(tour).status) == ("completed", "cancelled")
    assert statuses(tour)["leg"] == "skipped"


def test_a_branch_that_is_given_up_cancels_its_sub_process() -> None:
    process = troubled(processes.Detour, rest=ConnectionError("not tired"))
    assert child_of(process).status == "waiting"
    faults.clear()
    insist(process, 1)

    assert (process.status, results(process)["home"]) == ("completed", "Ito")
    assert statuses(process)["leg"] == "cancelled"
    assert go_on(child_of(process)).status == "cancelled"


def test_when_parent_and_child_are_cancelled_at_once_both_end() -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    cancel(child.pk, request=asked())
    operated(cancel, tour)

    assert tour.status == go_on(child).status == "cancelled"
    assert journal.undone == ["back from 2 days to Kobe"]


@pytest.mark.django_db(transaction=True)
def test_a_sub_process_that_ends_while_its_parent_is_cancelled() -> None:
    for number in range(4):
        journal.forget()
        tour = finished(processes.Tour, f"P-{number}", 2)
        child = child_of(tour)
        decide(child.pk, visit(child, "look").pk, "yes", request=asked())
        together(drain, press(cancel, tour))

        assert go_on(tour).status in ("cancelled", "completed")
        assert go_on(child).status in ("cancelled", "completed")
        assert not StepRun.objects.filter(finished_at=None).exists()


# Redone


def test_a_sub_process_is_redone_as_a_new_one() -> None:
    tour = troubled(processes.Tour, pack=ConnectionError("no line"))
    first = child_of(tour)
    decided(first)
    assert go_on(tour).status == "retrying"
    operated(redo, tour, "leg")
    assert child_of(tour) != first
    decided(child_of(tour))
    faults.clear()

    assert insist(tour, 1).status == "completed"
    assert [run.round for run in visits(tour, "leg")] == [1, 2]


def test_a_result_that_was_broken_inside_is_an_incident_of_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tour = finished(processes.Tour)
    child = child_of(tour)
    decide(child.pk, visit(child, "look").pk, "yes", request=asked())
    original = subprocesses.child_result

    def broken(process: ProcessInstance) -> Any:
        process.step_runs.filter(node="arrive").update(result="Rome")
        return original(process)

    with monkeypatch.context() as patch:
        patch.setattr(subprocesses, "child_result", broken)
        assert go_on(tour).status == "failed"
    said = f"the sub-process leg {child.pk} has lost its result: the stored result of arrive"
    assert said in complaint(tour).message
    assert skipped(tour, "leg", "arrived").status == "completed"
    arrive = child.step_runs.filter(node="arrive")
    arrive.update(result="arrived after 2 days to Kobe")  # as must hold always
