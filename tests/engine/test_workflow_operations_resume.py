"""Going on from a checkpoint: results until then are kept, what was settled later is done again."""

from datetime import timedelta

import pytest

from orchestrator import Permanent, send_event
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import cancel, decide, redo, resume, retry, skip
from orchestrator.engine.steps.session import Session
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    ProcessInstance,
)
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

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

BAD = Permanent("no line")


def after(process: ProcessInstance, node: str) -> int:
    """Return the revision in which a node was settled, and what it led to."""
    runs = process.step_runs.filter(node=node, kind="step", status="done")
    left = runs.latest("pk").left
    assert left is not None
    return left


def answered(process: ProcessInstance) -> ProcessInstance:
    run = process.step_runs.get(kind="ask", finished_at=None)
    decide(process.pk, run.pk, "yes", request=asked())
    return go_on(process)


def test_what_came_after_the_checkpoint_is_done_again() -> None:
    process = finished(processes.Trip)
    done.clear()
    action = resume(process.pk, after(process, "hotel"), request=asked())
    process = go_on(process)

    assert done == ["invoice"]
    assert action.after["resumed_from"] == 4
    assert (process.status, process.open_steps) == ("waiting", 1)
    assert [r.status for r in visits(process, "invoice")] == ["superseded", "done"]
    assert [r.round for r in visits(process, "approve")] == [1, 2]
    assert answered(process).status == "completed"
    assert done == ["invoice", "deliver"]


def test_a_join_that_waited_at_the_checkpoint_waits_again() -> None:
    process = finished(processes.Trip)
    done.clear()
    resume(process.pk, after(process, "flight"), request=asked())
    joins = visits(process, "invoice")
    assert (joins[-1].kind, joins[-1].arrived, joins[-1].taken) == ("join", 1, 1)
    process = go_on(process)
    assert done == ["hotel", "invoice"]

    done.clear()
    resume(process.pk, 1, request=asked())
    process = answered(go_on(process))
    assert done == ["plan", "flight", "hotel", "invoice", "deliver"]
    assert process.status == "completed"


def test_from_the_last_checkpoint_what_has_failed_is_tried_again() -> None:
    faults["deliver"] = BAD
    process = answered(finished(processes.Trip))
    assert process.status == "failed"
    faults.clear()
    done.clear()
    resume(process.pk, process.revision, request=asked())
    process = go_on(process)

    assert (process.status, done) == ("completed", ["deliver"])
    assert Incident.objects.get().resolution == "resumed from a checkpoint"


def test_a_superseded_result_is_not_read_again() -> None:
    process = finished(processes.Choice, "Ito", 2)
    assert process.status == "completed"

    faults["rest"] = BAD
    process = finished(processes.Choice, "Ito", 2)
    assert statuses(process)["flight"] == "not_taken"
    faults.clear()
    resume(process.pk, 1, request=asked())
    plan = process.step_runs.get(node="plan", finished_at=None)
    skip(process.pk, plan.pk, {"city": "Osaka", "nights": 9}, request=asked())
    process = go_on(process)

    assert process.status == "completed"
    assert [r.status for r in visits(process, "flight")] == ["superseded", "done"]
    assert [r.status for r in visits(process, "hotel")] == ["superseded", "not_taken"]
    assert results(process)["flight"] == "flight to Osaka"
    assert "hotel" not in results(process)


def test_a_map_keeps_the_elements_that_were_done() -> None:
    process = launch(processes.Block, "Ito", 5)
    faults["reserve 4"] = faults["reserve 5"] = BAD
    process = go_on(process)
    assert process.status == "failed"
    third = process.step_runs.get(item=2).left
    assert third is not None
    faults.clear()
    done.clear()
    resume(process.pk, third, request=asked())
    head = process.step_runs.get(kind="map", finished_at=None)
    assert head.progress == {"done": 3, "failed": 0, "total": 5}
    assert (head.expected, head.round) == (5, 2)
    process = go_on(process)

    assert done == ["reserve 4", "reserve 5", "total", "pay"]
    assert (process.status, results(process)["total"]) == ("completed", 5)


def test_a_map_that_was_done_later_runs_anew() -> None:
    faults["pay"] = BAD
    process = finished(processes.Block, "Ito", 3)
    faults.clear()
    done.clear()
    resume(process.pk, after(process, "rooms"), request=asked())
    process = go_on(process)

    assert sorted(done) == ["pay", "reserve 1", "reserve 2", "reserve 3", "total"]
    assert (process.status, results(process)["pay"]) == ("completed", 300)


def test_in_a_loop_the_visits_until_then_are_kept() -> None:
    faults["rest"] = BAD
    process = finished(processes.Hunt)
    faults.clear()
    done.clear()
    second = process.step_runs.get(node="search", visit=2)
    assert second.left is not None
    resume(process.pk, second.left, request=asked())
    process = go_on(process)

    assert done == ["search", "choose", "rest"]
    assert results(process)["choose"] == 3
    assert [(r.visit, r.round, r.status) for r in visits(process, "search")] == [
        (1, 1, "done"),
        (2, 1, "done"),
        (3, 1, "superseded"),
        (3, 2, "done"),
    ]


def test_it_can_be_resumed_again_and_from_before() -> None:
    process = finished(processes.Trip)
    resume(process.pk, 4, request=asked())
    process = go_on(process)
    resume(process.pk, process.revision - 1, request=asked())
    process = go_on(process)
    resume(process.pk, 2, request=asked())
    process = go_on(process)

    assert [r.round for r in visits(process, "approve")] == [1, 2, 3, 4]
    assert answered(process).status == "completed"
    assert process.step_runs.filter(status="superseded").count() > 5


def test_what_was_given_up_by_a_resumption_is_no_place_to_go_back_to() -> None:
    process = finished(processes.Trip)
    for revision in (0, -1, 99):
        with pytest.raises(OperationRefused, match="there is no checkpoint"):
            resume(process.pk, revision, request=asked())
    resume(process.pk, 2, request=asked())
    go_on(process)

    with pytest.raises(OperationRefused, match="checkpoint 3 was given up"):
        resume(process.pk, 3, request=asked())
    resume(process.pk, 2, request=asked())


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_runs_a_superseded_step_is_not_listened_to() -> None:
    process = launch(processes.Visa)

    def meanwhile() -> None:
        del during["apply"]
        resume(process.pk, 1, request=asked())

    during["apply"] = meanwhile
    process = go_on(process)

    assert [r.status for r in visits(process, "apply")] == ["superseded", "done"]
    assert (process.status, done) == ("waiting", ["apply", "apply"])


def test_an_event_that_was_taken_later_is_offered_again() -> None:
    process = finished(processes.Visa)
    faults["show"] = BAD
    send_event(VisaGranted("V-1"), id="1", source="consulate", process_id=process.pk)
    assert go_on(process).status == "failed"
    faults.clear()
    resume(process.pk, 1, request=asked())
    process = go_on(process)

    assert (process.status, results(process)["show"]) == ("completed", "V-1")
    first, copy = InboxEvent.objects.order_by("pk")
    assert (first.verdict, copy.verdict, copy.source) == (
        "moved",
        "moved",
        "resumption",
    )


def test_a_deadline_that_passed_later_waits_again_and_its_other_way_is_gone() -> None:
    faults["close"] = BAD
    process = finished(processes.Patient)
    pass_time(timedelta(days=3))
    process = go_on(process)
    assert (process.status, statuses(process)["remind"]) == ("failed", "done")
    done.clear()
    resume(process.pk, after(process, "remind"), request=asked())
    process = go_on(process)
    assert (process.status, done) == ("failed", [])  # its close was called again

    faults.clear()
    resume(process.pk, after(process, "apply"), request=asked())
    process = go_on(process)
    assert (process.status, process.step) == ("waiting", "reminded")
    send_event(VisaGranted("V-1"), id="1", source="consulate", process_id=process.pk)
    process = go_on(process)

    assert (process.status, results(process)["close"]) == ("completed", "V-1")
    assert statuses(process)["remind"] == "not_taken"


def test_what_a_failure_has_cancelled_is_brought_back() -> None:
    faults["flight"] = BAD
    process = finished(processes.Hasty)
    assert statuses(process)["hotel"] == "cancelled"
    faults.clear()
    resume(process.pk, process.revision, request=asked())
    process = answered(go_on(process))

    assert (process.status, done.count("rest")) == ("completed", 1)


def test_a_join_that_was_given_up_with_its_branches_waits_no_more() -> None:
    process = finished(processes.Shortcut)
    assert visit(process, "both").arrived == 1
    faults["search"] = BAD
    send_event(VisaGranted("V-1"), id="1", source="consulate", process_id=process.pk)
    process = go_on(process)
    assert (process.status, statuses(process)["both"]) == ("failed", "not_taken")
    faults.clear()
    resume(process.pk, process.revision, request=asked())
    process = go_on(process)

    assert (process.status, process.open_steps) == ("completed", 0)
    assert len(visits(process, "both")) == 1


def test_a_bad_result_that_decided_on_the_way_is_not_gone_by() -> None:
    faults["rest"] = BAD
    process = finished(processes.Choice)
    plan = process.step_runs.filter(node="plan")
    plan.update(result={"city": "Osaka", "nights": 2})

    with pytest.raises(OperationRefused, match="plan does not match its checksum"):
        resume(process.pk, process.revision, request=asked())
    resume(process.pk, 1, request=asked())

    plan.filter(status="superseded").update(result={"city": "Nara", "nights": 2})
    faults.clear()
    assert go_on(process).status == "completed"


def test_a_sub_process_that_was_open_goes_on() -> None:
    process = finished(processes.Tour)
    child = ProcessInstance.objects.get(parent=process)
    resume(process.pk, process.revision, request=asked())
    assert child.status == "waiting"
    answered(child)
    process = go_on(process)

    assert process.status == "completed"
    assert ProcessInstance.objects.filter(parent=process).count() == 1


def test_a_sub_process_that_began_later_is_cancelled_and_begun_anew() -> None:
    process = finished(processes.Tour)
    resume(process.pk, 1, request=asked())
    process = go_on(process)
    first, second = ProcessInstance.objects.filter(parent=process).order_by("pk")

    assert (first.status, second.status) == ("cancelled", "waiting")
    assert journal.undone == ["back from 2 days to Kobe"]
    answered(second)
    assert go_on(process).status == "completed"


def test_undoing_is_not_resumed() -> None:
    process = finished(processes.Undoable)
    faults["release_hotel"] = BAD
    cancel(process.pk, request=asked())
    assert go_on(process).status == "failed"

    with pytest.raises(OperationRefused, match="being undone"):
        resume(process.pk, 2, request=asked())
    with pytest.raises(OperationRefused, match="being undone"):
        redo(process.pk, "plan", request=asked())


def test_a_step_that_is_done_after_a_resumption_is_undone_once() -> None:
    process = finished(processes.Undoable)
    resume(process.pk, 2, request=asked())
    process = go_on(process)
    cancel(process.pk, request=asked())
    process = go_on(process)

    assert process.status == "cancelled"
    assert sorted(journal.undone) == [
        "release 2 nights in Nara",
        "release flight to Nara",
    ]


def test_after_everything_was_killed_nothing_needs_to_be_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = launch(processes.Trip)
    faults["invoice"] = BAD
    with monkeypatch.context() as patch:
        patch.setattr(Session, "failed", vanish)
        drain()
    faults.clear()
    assert done == ["plan", "flight", "hotel"]
    assert visit(process, "invoice").owner
    pass_time(timedelta(minutes=1))  # the lease ends
    process = go_on(process)

    assert done == ["plan", "flight", "hotel", "invoice"]
    assert process.status == "waiting"
    causes = Checkpoint.objects.filter(instance=process).values_list("cause", flat=True)
    assert not [cause for cause in causes if cause.startswith("operator")]


def vanish(*args: object) -> None:
    """Do nothing, as a worker that is gone with all that it has claimed."""


def test_retry_after_a_resumption_works_as_before() -> None:
    process = finished(processes.Trip)
    faults["invoice"] = BAD
    resume(process.pk, 2, request=asked())
    process = go_on(process)
    assert process.status == "failed"
    faults.clear()
    retry(process.pk, request=asked())

    assert answered(go_on(process)).status == "completed"
