"""Going on from a checkpoint: results until then are kept, what was settled later is done again."""

from datetime import timedelta

import pytest

from orchestrator import send_event
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import resume, skip
from orchestrator.engine.steps.session import Session
from orchestrator.models import Checkpoint, InboxEvent, Incident, ProcessInstance
from orchestrator.testing import pass_time
from tests.apps.compensation import journal, processes
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults
from tests.apps.compensation.steps import VisaGranted, during
from tests.apps.patterns.desk import (
    finished,
    go_on,
    launch,
    results,
    statuses,
    visit,
    visits,
)
from tests.services.asking import asked
from tests.services.doing import refused
from tests.services.operated import BAD, decided, failed, mended, operated, troubled

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]


def after(process: ProcessInstance, node: str) -> int:
    """Return the revision in which a node was settled, and what it led to."""
    runs = process.step_runs.filter(node=node, kind="step", status="done")
    left = runs.latest("pk").left
    assert left is not None
    return left


def visa_granted(process: ProcessInstance) -> ProcessInstance:
    """Send a process the event that it waits for, and run whatever is ready then."""
    send_event(VisaGranted("V-1"), id="1", source="consulate", process_id=process.pk)
    return go_on(process)


def rounds(process: ProcessInstance, node: str) -> list[str]:
    """Return the statuses of all visits of a node."""
    return [run.status for run in visits(process, node)]


def test_what_came_after_the_checkpoint_is_done_again() -> None:
    process = finished(processes.Trip)
    done.clear()
    action = resume(process.pk, after(process, "hotel"), request=asked())

    assert (go_on(process).status, process.open_steps) == ("waiting", 1)
    assert done == ["invoice"]
    assert action.after["resumed_from"] == 4
    assert rounds(process, "invoice") == ["superseded", "done"]
    assert [r.round for r in visits(process, "approve")] == [1, 2]
    assert decided(process).status == "completed"
    assert done == ["invoice", "deliver"]


def test_a_join_that_waited_at_the_checkpoint_waits_again() -> None:
    process = finished(processes.Trip)
    done.clear()
    resume(process.pk, after(process, "flight"), request=asked())
    join = visits(process, "invoice")[-1]
    assert (join.kind, join.arrived, join.taken) == ("join", 1, 1)
    go_on(process)
    assert done == ["hotel", "invoice"]

    done.clear()
    operated(resume, process, 1)
    assert decided(process).status == "completed"
    assert done == ["plan", "flight", "hotel", "invoice", "deliver"]


def test_from_the_last_checkpoint_what_has_failed_is_tried_again() -> None:
    process = decided(troubled(processes.Trip, deliver=BAD))
    assert process.status == "failed"
    journal.forget()
    operated(resume, process, process.revision)

    assert (process.status, done) == ("completed", ["deliver"])
    assert Incident.objects.get().resolution == "resumed from a checkpoint"


def test_a_superseded_result_is_not_read_again() -> None:
    process = failed("rest", of=processes.Choice, given=("Ito", 2))
    assert statuses(process)["flight"] == "not_taken"
    resume(process.pk, 1, request=asked())
    plan = process.step_runs.get(node="plan", finished_at=None)
    operated(skip, process, plan.pk, {"city": "Osaka", "nights": 9})

    assert process.status == "completed"
    assert rounds(process, "flight") == ["superseded", "done"]
    assert rounds(process, "hotel") == ["superseded", "not_taken"]
    assert results(process)["flight"] == "flight to Osaka"
    assert "hotel" not in results(process)


def test_a_map_keeps_the_elements_that_were_done() -> None:
    process = failed("reserve 4", "reserve 5", of=processes.Block, given=("Ito", 5))
    third = process.step_runs.get(item=2).left
    assert third is not None
    done.clear()
    resume(process.pk, third, request=asked())
    head = process.step_runs.get(kind="map", finished_at=None)
    assert head.progress == {"done": 3, "failed": 0, "total": 5}
    assert (head.expected, head.round) == (5, 2)

    assert go_on(process).status == "completed"
    assert done == ["reserve 4", "reserve 5", "total", "pay"]
    assert results(process)["total"] == 5


def test_a_map_that_was_done_later_runs_anew() -> None:
    process = failed("pay", of=processes.Block, given=("Ito", 3))
    done.clear()
    operated(resume, process, after(process, "rooms"))

    assert sorted(done) == ["pay", "reserve 1", "reserve 2", "reserve 3", "total"]
    assert (process.status, results(process)["pay"]) == ("completed", 300)


def test_in_a_loop_the_visits_until_then_are_kept() -> None:
    process = failed("rest", of=processes.Hunt)
    done.clear()
    second = process.step_runs.get(node="search", visit=2)
    operated(resume, process, second.left)

    assert done == ["search", "choose", "rest"]
    assert results(process)["choose"] == 3
    found = [(run.visit, run.round) for run in visits(process, "search")]
    assert found == [(1, 1), (2, 1), (3, 1), (3, 2)]
    assert rounds(process, "search") == ["done", "done", "superseded", "done"]


def test_it_can_be_resumed_again_and_from_before() -> None:
    process = finished(processes.Trip)
    operated(resume, process, 4)
    operated(resume, process, process.revision - 1)
    operated(resume, process, 2)

    assert [r.round for r in visits(process, "approve")] == [1, 2, 3, 4]
    assert decided(process).status == "completed"
    assert process.step_runs.filter(status="superseded").count() > 5


def test_what_was_given_up_by_a_resumption_is_no_place_to_go_back_to() -> None:
    process = finished(processes.Trip)
    for revision in (0, -1, 99):
        refused("there is no checkpoint", resume, process, revision)
    operated(resume, process, 2)

    refused("checkpoint 3 was given up", resume, process, 3)
    resume(process.pk, 2, request=asked())


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_runs_a_superseded_step_is_not_listened_to() -> None:
    process = launch(processes.Visa)

    def meanwhile() -> None:
        del during["apply"]
        resume(process.pk, 1, request=asked())

    during["apply"] = meanwhile

    assert (go_on(process).status, done) == ("waiting", ["apply", "apply"])
    assert rounds(process, "apply") == ["superseded", "done"]


def test_an_event_that_was_taken_later_is_offered_again() -> None:
    process = finished(processes.Visa)
    faults["show"] = BAD
    assert visa_granted(process).status == "failed"
    faults.clear()
    operated(resume, process, 1)

    assert (process.status, results(process)["show"]) == ("completed", "V-1")
    told = InboxEvent.objects.order_by("pk").values_list("verdict", "source")
    assert list(told) == [("moved", "consulate"), ("moved", "resumption")]


def test_a_deadline_that_passed_later_waits_again_and_its_other_way_is_gone() -> None:
    process = troubled(processes.Patient, close=BAD)
    pass_time(timedelta(days=3))
    process.refresh_from_db()
    assert (process.status, statuses(process)["remind"]) == ("failed", "done")
    done.clear()
    operated(resume, process, after(process, "remind"))
    assert (process.status, done) == ("failed", [])  # its close was called again

    faults.clear()
    operated(resume, process, after(process, "apply"))
    assert (process.status, process.step) == ("waiting", "reminded")
    visa_granted(process)

    assert (process.status, results(process)["close"]) == ("completed", "V-1")
    assert statuses(process)["remind"] == "not_taken"


def test_a_join_that_was_given_up_with_its_branches_waits_no_more() -> None:
    process = finished(processes.Shortcut)
    assert visit(process, "both").arrived == 1
    faults["search"] = BAD
    assert visa_granted(process).status == "failed"
    assert statuses(process)["both"] == "not_taken"
    faults.clear()
    operated(resume, process, process.revision)

    assert (process.status, process.open_steps) == ("completed", 0)
    assert len(visits(process, "both")) == 1


def test_a_bad_result_that_decided_on_the_way_is_not_gone_by() -> None:
    process = failed("rest", of=processes.Choice)
    plan = process.step_runs.filter(node="plan")
    plan.update(result={"city": "Osaka", "nights": 2})

    why = "plan does not match its checksum"
    refused(why, resume, process, process.revision)
    resume(process.pk, 1, request=asked())
    plan.filter(status="superseded").update(result={"city": "Nara", "nights": 2})
    assert go_on(process).status == "completed"


def test_a_sub_process_that_was_open_goes_on_and_one_begun_later_is_cancelled() -> None:
    process = finished(processes.Tour)
    operated(resume, process, 1)
    first, second = process.children.order_by("pk")
    assert (first.status, second.status) == ("cancelled", "waiting")
    assert journal.undone == ["back from 2 days to Kobe"]
    operated(resume, process, process.revision)
    decided(second)

    assert go_on(process).status == "completed"
    assert process.children.count() == 2


def test_after_everything_was_killed_nothing_needs_to_be_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = launch(processes.Trip)
    faults["invoice"] = BAD
    with monkeypatch.context() as patch:
        patch.setattr(Session, "settle_failure", vanish)
        drain()
    faults.clear()
    assert done == ["plan", "flight", "hotel"]
    assert visit(process, "invoice").owner
    pass_time(timedelta(minutes=1))  # the lease ends

    assert go_on(process).status == "waiting"
    assert done == ["plan", "flight", "hotel", "invoice"]
    assert not Checkpoint.objects.filter(cause__startswith="operator").exists()


def vanish(*args: object) -> None:
    """Do nothing, as a worker that is gone with all that it has claimed."""


def test_retry_after_a_resumption_works_as_before() -> None:
    process = finished(processes.Trip)
    faults["invoice"] = BAD
    assert operated(resume, process, 2).status == "failed"

    mended(process)
    assert decided(process).status == "completed"
