"""Undoing: finished steps in reverse order, each once, with retries of their own, whatever happens meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from orchestrator import CorruptInput, Permanent
from orchestrator.definition import Workflow
from orchestrator.engine.claims import leases
from orchestrator.engine.drain import drain
from orchestrator.engine.invariants import violations
from orchestrator.engine.operations import cancel, redo, retry, skip
from orchestrator.engine.steps.running import CLAIMED
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import Incident, ProcessInstance, StepRun
from orchestrator.testing import pass_time
from tests.apps.compensation import processes
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.compensation.steps import during
from tests.apps.patterns.desk import (
    complaint,
    finished,
    go_on,
    insist,
    launch,
    statuses,
)
from tests.apps.patterns.fixtures import press
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked

__all__ = ["known", "press", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

BAD = Permanent("no line")
FLIGHT, HOTEL = "release flight to Nara", "release 2 nights in Nara"


def undos(process: ProcessInstance) -> list[StepRun]:
    return list(process.step_runs.filter(kind="undo").order_by("pk"))


def failing(step: str = "invoice") -> ProcessInstance:
    """Start a trip one of whose steps fails for good; nothing has run yet."""
    faults[step] = BAD
    return launch(processes.Undoable)


# The order


BACK = pytest.mark.parametrize(
    ("step", "back"), [("plan", []), ("hotel", [FLIGHT]), ("invoice", [HOTEL, FLIGHT])]
)
"""How far it was, and what is undone then: what was done, in reverse order."""


@BACK
def test_a_step_that_declines_has_its_process_undone_however_far_it_was(
    step: str, back: list[str]
) -> None:
    process = go_on(failing(step))

    assert (process.status, statuses(process)[step]) == ("cancelled", "failed")
    assert undone == back
    nodes = ["hotel", "flight"][2 - len(back) :]
    found = [(run.node, run.status) for run in undos(process)]
    assert found == [(node, "done") for node in nodes]
    assert not process.step_runs.filter(finished_at=None).exists()
    told = Incident.objects.get()
    assert (told.step, told.message) == (step, "Permanent: no line")
    assert told.resolution == "undone"


@BACK
def test_an_unexpected_error_stops_for_a_person_however_far_it_was(
    step: str, back: list[str]
) -> None:
    faults[step] = ConnectionError("no line")
    process = insist(finished(processes.Undoable))
    assert (process.status, statuses(process)[step], undone) == ("failed", "failed", [])
    assert complaint(process).message == "ConnectionError: no line"

    cancel(process.pk, request=asked())
    assert (go_on(process).status, undone) == ("cancelled", back)


def test_after_an_unexpected_error_it_goes_on_when_it_is_retried() -> None:
    faults["invoice"] = ConnectionError("no line")
    process = insist(finished(processes.Undoable))
    faults.clear()
    retry(process.pk, request=asked())

    assert (go_on(process).status, undone) == ("waiting", [])
    assert statuses(process)["approve"] == "waiting"


def test_without_anything_that_undoes_a_step_one_that_declines_stops_for_a_person() -> (
    None
):
    faults["invoice"] = BAD
    process = finished(processes.Trip)

    assert (process.status, statuses(process)["invoice"]) == ("failed", "failed")
    assert complaint(process).message == "Permanent: no line"


def test_a_result_that_stays_corrupted_stops_for_a_person() -> None:
    process = launch(processes.Undoable)
    faults["invoice"] = CorruptInput("plan", "no such city")
    process = go_on(process)

    assert (process.status, undone) == ("failed", [])
    assert "plan was done 4 times" in complaint(process).message


def test_what_is_open_beside_it_is_cancelled() -> None:
    process = launch(processes.Undoable)
    faults["hotel"] = ConnectionError("no line")
    process = go_on(process)
    faults["hotel"] = BAD
    process = insist(process, 1)

    assert (process.status, undone) == ("cancelled", [FLIGHT])
    assert statuses(process)["invoice"] == "cancelled"


def test_each_visit_of_a_loop_is_undone_with_its_own_result() -> None:
    faults["rest"] = BAD
    process = finished(processes.Search)

    assert process.status == "cancelled"
    assert undone == ["forget 3", "forget 2", "forget 1"]


def test_each_element_of_a_map_is_undone_with_its_own_result() -> None:
    faults["pay"] = BAD
    process = finished(processes.Group, "Ito", 3)

    assert process.status == "cancelled"
    assert sorted(undone) == ["free room 1", "free room 2", "free room 3"]


def test_of_a_map_that_fails_the_elements_that_were_done_are_undone() -> None:
    faults["reserve 3"] = BAD
    process = finished(processes.Group, "Ito", 5)

    assert (process.status, process.open_steps) == ("cancelled", 0)
    booked = [entry.removeprefix("reserve") for entry in done if "reserve" in entry]
    assert sorted(undone) == sorted(f"free room{room}" for room in booked)
    assert not process.step_runs.filter(finished_at=None).exists()


def test_a_step_that_was_redone_is_undone_once() -> None:
    process = finished(processes.Undoable)
    redo(process.pk, "flight", request=asked())
    process = go_on(process)
    cancel(process.pk, request=asked())
    process = go_on(process)

    assert (process.status, sorted(undone)) == ("cancelled", [HOTEL, FLIGHT])
    assert [run.round for run in undos(process) if run.node == "flight"] == [2]


def test_a_step_that_was_skipped_has_nothing_to_undo() -> None:
    faults["flight"] = ConnectionError("no line")
    process = finished(processes.Undoable)
    run = process.step_runs.get(node="flight", kind="step")
    skip(process.pk, run.pk, "by train", request=asked())
    process = go_on(process)
    cancel(process.pk, request=asked())

    assert go_on(process).status == "cancelled"
    assert undone == [HOTEL]


# Its own failures


def test_undoing_is_retried_by_itself_and_people_are_told_until_all_is_undone() -> None:
    process = failing()
    faults["release_hotel"] = ConnectionError("no line")
    process = go_on(process)
    run = undos(process)[0]
    assert (process.status, run.status) == ("retrying", "retrying")
    assert "no line" in run.error
    assert complaint(process).step == "invoice"
    faults.clear()
    process = insist(process, 1)

    assert (process.status, undone) == ("cancelled", [HOTEL, FLIGHT])
    assert Incident.objects.get().resolution == "undone"


@pytest.mark.usefixtures("press")
def test_what_undoes_a_step_has_a_policy_and_a_queue_of_its_own() -> None:
    faults["insure"] = BAD
    faults["give_back"] = ConnectionError("no line")
    process = finished(processes.Careful)
    [run] = undos(process)
    assert (run.status, run.queue, run.attempt) == ("ready", "press", 0)

    drain("press")
    pass_time(timedelta(minutes=10))
    process = go_on(process, "press")
    run.refresh_from_db()
    assert (run.status, run.attempt) == ("failed", 2)
    told = Incident.objects.open().filter(step_run_id=run.pk)
    assert "no line" in told.get().message


@pytest.mark.usefixtures("press")
def test_what_was_done_in_a_transaction_is_undone_in_one() -> None:
    faults["insure"] = BAD
    process = go_on(finished(processes.Careful), "press")

    assert process.status == "cancelled"
    assert undone == ["flight to Nara, inside a transaction"]


def test_undoing_that_fails_for_good_waits_for_a_person() -> None:
    process = failing()
    faults["release_hotel"] = ConnectionError("no line")
    process = insist(process)
    failed, waiting = undos(process)
    assert (process.status, failed.status, waiting.status) == (
        "failed",
        "failed",
        "waiting",
    )
    told = Incident.objects.open().filter(step_run_id=failed.pk)
    assert "no line" in told.get().message
    faults.clear()
    retry(process.pk, request=asked())
    process = go_on(process)

    assert (process.status, undone) == ("cancelled", [HOTEL, FLIGHT])
    assert not Incident.objects.open().exists()


def test_undoing_that_fails_cancels_nothing_that_is_still_to_be_undone() -> None:
    faults["rest"] = BAD
    faults["release_hotel"] = BAD
    process = finished(processes.Strict)
    assert [run.status for run in undos(process)] == ["failed", "waiting"]
    faults.clear()
    retry(process.pk, request=asked())

    assert go_on(process).status == "cancelled"
    assert undone == [HOTEL, FLIGHT]


def test_undoing_that_is_skipped_goes_on_with_the_next() -> None:
    process = failing()
    faults["release_hotel"] = BAD
    process = go_on(process)
    skip(process.pk, undos(process)[0].pk, None, request=asked())
    process = go_on(process)

    assert (process.status, undone) == ("cancelled", [FLIGHT])


# Workers that die


def test_a_worker_that_dies_while_undoing_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = failing()
    original = Session._call

    def deadly(self: Session, run: StepRun, *more: Any) -> object:
        if run.kind == "undo":
            raise Killed
        return original(self, run, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_call", deadly)
        with pytest.raises(Killed):
            drain()
    run = undos(process)[0]
    assert (run.status, run.attempt, undone) == ("running", 1, [])
    pass_time(timedelta(minutes=1))  # the lease ends
    process = go_on(process)

    assert (process.status, undone) == ("cancelled", [HOTEL, FLIGHT])
    assert undos(process)[0].attempt == 2


class Killed(BaseException):
    """The worker is gone, with all that it has claimed."""


def test_a_step_that_was_only_claimed_by_a_dead_worker_is_undone_once() -> None:
    process = failing()
    faults["release_hotel"] = ConnectionError("no line")
    process = go_on(process)
    faults.clear()
    StepRun.objects.filter(status="retrying").update(wake_at=process.started_at)
    claimed = step_runs.claim("default", "dead", 8, 10.0, **CLAIMED)
    assert [one.work.kind for one in claimed] == ["undo"]
    assert go_on(process).status == "retrying"
    leases.end(["dead"])

    assert go_on(process).status == "cancelled"
    assert undone == [HOTEL, FLIGHT]


@pytest.mark.django_db(transaction=True)
def test_many_workers_undo_each_step_once() -> None:
    process = launch(processes.Group, "Ito", 12)
    faults["pay"] = BAD
    assert not raised(together(drain, drain, drain))
    process = go_on(process)

    assert process.status == "cancelled"
    assert sorted(undone) == sorted(f"free room {n}" for n in range(1, 13))


def test_a_step_that_is_running_when_its_process_is_cancelled_is_not_listened_to() -> (
    None
):
    process = launch(processes.Visa)
    during["apply"] = lambda: cancel(process.pk, request=asked())
    process = go_on(process)

    assert (process.status, statuses(process)["apply"]) == ("cancelled", "cancelled")
    assert done == ["apply"]


def test_a_step_that_is_running_comes_to_its_end_and_is_undone_then() -> None:
    process = launch(processes.Undoable)
    broken: list[str] = []

    def meanwhile() -> None:
        cancel(process.pk, request=asked())
        broken.extend(violations())

    during["flight"] = meanwhile
    process = go_on(process)

    assert broken == []

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (done, undone) == (["plan", "flight"], [FLIGHT])
    assert statuses(process)["hotel"] == "cancelled"


@pytest.mark.parametrize(
    ("workflow", "ran", "back"),
    [
        (processes.Leg, ["drive"], ["back from 2 days to Nara"]),
        (processes.Visa, [], []),
    ],
)
def test_a_step_that_was_just_claimed_when_its_process_is_cancelled(
    workflow: type[Workflow],
    ran: list[str],
    back: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It comes to its end if it can be undone; its worker knew nothing of it when it read the process."""
    process = launch(workflow, "Nara", 2)
    usual = Session.of

    def late(run: StepRun, *more: Any) -> Session | None:
        if run.kind != "undo":
            cancel(process.pk, request=asked())
        return usual(run, *more)

    monkeypatch.setattr(Session, "of", late)
    process = go_on(process)

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (done, undone) == (ran, back)


def test_a_step_that_a_dead_worker_had_claimed_when_its_process_was_cancelled() -> None:
    """Whoever takes it over cannot tell whether it had begun: it comes to its end, and is undone."""
    process = launch(processes.Leg, "Nara", 2)
    step_runs.claim("default", "dead", 8, 10.0, **CLAIMED)
    cancel(process.pk, request=asked())
    leases.end(["dead"])

    process = go_on(process)

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (done, undone) == (["drive"], ["back from 2 days to Nara"])


def test_a_running_step_that_fails_while_its_process_is_undone_is_not_tried_again() -> (
    None
):
    process = launch(processes.Undoable)

    def meanwhile() -> None:
        cancel(process.pk, request=asked())
        raise ConnectionError("no line")

    during["flight"] = meanwhile
    process = go_on(process)

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert FLIGHT not in undone
    assert statuses(process)["flight"] == "cancelled"


def test_when_a_branch_fails_what_runs_beside_it_is_undone_too() -> None:
    process = launch(processes.Undoable)
    drain(stop=once())  # the plan
    assert done == ["plan"]
    faults["hotel"] = BAD

    def meanwhile() -> None:
        del during["flight"]
        drain()  # another worker, at the hotel

    during["flight"] = meanwhile
    process = go_on(process)

    assert (process.status, undone) == ("cancelled", [FLIGHT])


def once() -> Any:
    """Stop after the first piece of work."""
    looked = iter([False])
    return lambda: next(looked, True)
