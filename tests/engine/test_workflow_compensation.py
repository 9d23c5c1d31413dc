"""Undoing: finished steps in reverse order, each once, with retries of their own, whatever happens meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from orchestrator import CorruptInput
from orchestrator.definition import Workflow
from orchestrator.engine.invariants import violations
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel, redo, resume, skip
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.steps.session import Session
from orchestrator.engine.work import leases
from orchestrator.models import Incident, ProcessInstance, StepRun
from orchestrator.testing import pass_time
from tests.apps.compensation import processes
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults, forget, undone
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
from tests.services.cases import cases
from tests.services.operated import BAD, mended, one_piece, operated, troubled

__all__ = ["known", "press", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

AWAY = ConnectionError("no line")
FLIGHT, HOTEL = "release flight to Nara", "release 2 nights in Nara"


def undos(process: ProcessInstance) -> list[StepRun]:
    return list(process.step_runs.filter(kind="undo").order_by("pk"))


def failing(step: str = "invoice") -> ProcessInstance:
    """Start a trip one of whose steps fails for good; nothing has run yet."""
    faults[step] = BAD
    return launch(processes.Undoable)


def ended(process: ProcessInstance) -> str:
    """Run whatever is ready; return the status of a process of which no step must be open."""
    go_on(process)
    assert process.open_steps == process.step_runs.filter(finished_at=None).count() == 0
    return process.status


# The order


BACK = cases("step, back", ("plan", []), ("hotel", [FLIGHT]), ("invoice", [HOTEL, FLIGHT]))  # fmt: skip
"""How far it was, and what is undone then: what was done, in reverse order."""


@BACK
def test_a_step_that_declines_has_all_undone(step: str, back: list[str]) -> None:
    forget()
    process = failing(step)

    assert ended(process) == "cancelled"
    assert (statuses(process)[step], undone) == ("failed", back)
    nodes = ["hotel", "flight"][2 - len(back) :]
    found = [(run.node, run.status) for run in undos(process)]
    assert found == [(node, "done") for node in nodes]
    told = Incident.objects.get()
    assert (told.step, told.message) == (step, "Permanent: no line")
    assert told.resolution == "undone"


@BACK
def test_an_unexpected_error_stops_for_a_person(step: str, back: list[str]) -> None:
    forget()
    process = insist(troubled(processes.Undoable, **{step: AWAY}))
    assert (process.status, statuses(process)[step], undone) == ("failed", "failed", [])
    assert complaint(process).message == "ConnectionError: no line"

    assert (operated(cancel, process).status, undone) == ("cancelled", back)


def test_after_an_unexpected_error_it_goes_on_when_it_is_retried() -> None:
    process = insist(troubled(processes.Undoable, invoice=AWAY))

    assert (mended(process).status, undone) == ("waiting", [])
    assert statuses(process)["approve"] == "waiting"


def test_where_nothing_undoes_a_step_one_that_declines_stops_for_a_person() -> None:
    process = troubled(processes.Trip, invoice=BAD)

    assert (process.status, statuses(process)["invoice"]) == ("failed", "failed")
    assert complaint(process).message == "Permanent: no line"


def test_a_result_that_stays_corrupted_stops_for_a_person() -> None:
    process = troubled(processes.Undoable, invoice=CorruptInput("plan", "no such city"))

    assert (process.status, undone) == ("failed", [])
    assert "plan was done 4 times" in complaint(process).message


def test_what_is_open_beside_it_is_cancelled() -> None:
    process = troubled(processes.Undoable, hotel=AWAY)
    faults["hotel"] = BAD
    insist(process, 1)

    assert (process.status, undone) == ("cancelled", [FLIGHT])
    assert statuses(process)["invoice"] == "cancelled"


@cases(
    "definition, given, step, back",
    (processes.Search, (), "rest", ["forget 3", "forget 2", "forget 1"]),
    (processes.Group, ("Ito", 2), "pay", ["free room 2", "free room 1"]),
)
def test_each_visit_of_a_loop_and_each_element_is_undone_with_its_own_result(
    definition: type[Workflow], given: tuple[Any, ...], step: str, back: list[str]
) -> None:
    forget()
    process = troubled(definition, *given, **{step: BAD})

    assert process.status == "cancelled"
    if definition is processes.Group:
        undone.sort(reverse=True)
    assert undone == back


def test_of_a_map_that_fails_the_elements_that_were_done_are_undone() -> None:
    faults["reserve 3"] = BAD

    assert ended(launch(processes.Group, "Ito", 5)) == "cancelled"
    booked = [entry.removeprefix("reserve") for entry in done if "reserve" in entry]
    assert sorted(undone) == sorted(f"free room{room}" for room in booked)


@cases("again, given", (redo, "flight"), (resume, 2))
def test_a_step_that_was_done_again_is_undone_once(again: Any, given: Any) -> None:
    forget()
    process = operated(again, finished(processes.Undoable), given)
    operated(cancel, process)

    assert (process.status, sorted(undone)) == ("cancelled", [HOTEL, FLIGHT])
    [flight] = [run for run in undos(process) if run.node == "flight"]
    assert flight.round == 2


def test_a_step_that_was_skipped_has_nothing_to_undo() -> None:
    process = troubled(processes.Undoable, flight=AWAY)
    flight = process.step_runs.get(node="flight", kind="step").pk
    operated(skip, process, flight, "by train")

    assert operated(cancel, process).status == "cancelled"
    assert undone == [HOTEL]


# Its own failures


def test_undoing_is_retried_by_itself_and_people_are_told_until_all_is_undone() -> None:
    faults["release_hotel"] = AWAY
    process = go_on(failing())
    run = undos(process)[0]
    assert (process.status, run.status) == ("retrying", "retrying")
    assert "no line" in run.error
    assert complaint(process).step == "invoice"
    faults.clear()
    insist(process, 1)

    assert (process.status, undone) == ("cancelled", [HOTEL, FLIGHT])
    assert Incident.objects.get().resolution == "undone"


@pytest.mark.usefixtures("press")
def test_what_undoes_a_step_has_a_policy_and_a_queue_of_its_own() -> None:
    process = troubled(processes.Careful, insure=BAD, give_back=AWAY)
    [run] = undos(process)
    assert (run.status, run.queue, run.attempt) == ("ready", "press", 0)

    go_on(process, "press")
    pass_time(timedelta(minutes=10))
    [run] = undos(process)
    assert (run.status, run.attempt) == ("failed", 2)
    told = Incident.objects.open().filter(step_run_id=run.pk)
    assert "no line" in told.get().message


@pytest.mark.usefixtures("press")
def test_what_was_done_in_a_transaction_is_undone_in_one() -> None:
    process = go_on(troubled(processes.Careful, insure=BAD), "press")

    assert process.status == "cancelled"
    assert undone == ["flight to Nara, inside a transaction"]


@cases(
    "definition, wrong",
    (processes.Undoable, {"invoice": BAD, "release_hotel": AWAY}),
    (processes.Strict, {"rest": BAD, "release_hotel": BAD}),
)
def test_undoing_that_fails_for_good_waits_for_a_person_and_cancels_nothing(
    definition: type[Workflow], wrong: dict[str, Exception]
) -> None:
    forget()
    faults.update(wrong)
    process = insist(finished(definition))
    hotel, flight = undos(process)
    found = (process.status, hotel.status, flight.status)
    assert found == ("failed", "failed", "waiting")
    told = Incident.objects.open().get(step_run_id=hotel.pk)
    assert "no line" in told.message

    assert (mended(process).status, undone) == ("cancelled", [HOTEL, FLIGHT])
    assert not Incident.objects.open().exists()


def test_undoing_that_is_skipped_goes_on_with_the_next() -> None:
    faults["release_hotel"] = BAD
    process = go_on(failing())
    operated(skip, process, undos(process)[0].pk, None)

    assert (process.status, undone) == ("cancelled", [FLIGHT])


# Workers that die


class Killed(BaseException):
    """The worker is gone, with all that it has claimed."""


def test_a_worker_that_dies_while_undoing_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = failing()
    original = Session.run

    def deadly(self: Session, run: StepRun) -> StepRun | None:
        if run.kind == "undo":
            raise Killed
        return original(self, run)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", deadly)
        with pytest.raises(Killed):
            drain()
    run = undos(process)[0]
    assert (run.status, run.attempt, undone) == ("running", 1, [])
    pass_time(timedelta(minutes=1))  # the lease ends

    assert (go_on(process).status, undone) == ("cancelled", [HOTEL, FLIGHT])
    assert undos(process)[0].attempt == 2


def test_a_step_that_was_only_claimed_by_a_dead_worker_is_undone_once() -> None:
    faults["release_hotel"] = AWAY
    process = go_on(failing())
    faults.clear()
    StepRun.objects.filter(status="retrying").update(wake_at=process.started_at)
    claimed = step_runs.claim("default", "dead", 8, 10.0, **CLAIMED)
    assert [one.work.kind for one in claimed] == ["undo"]
    assert go_on(process).status == "retrying"
    leases.end_leases(["dead"])

    assert (go_on(process).status, undone) == ("cancelled", [HOTEL, FLIGHT])


@pytest.mark.django_db(transaction=True)
def test_many_workers_undo_each_step_once() -> None:
    process = launch(processes.Group, "Ito", 12)
    faults["pay"] = BAD
    assert not raised(together(drain, drain, drain))

    assert go_on(process).status == "cancelled"
    assert sorted(undone) == sorted(f"free room {n}" for n in range(1, 13))


@cases(
    "definition, step, fails, ran, back",
    (processes.Visa, "apply", False, ["apply"], []),
    (processes.Undoable, "flight", False, ["plan", "flight"], [FLIGHT]),
    (processes.Undoable, "flight", True, ["plan"], []),
)
def test_a_step_that_runs_when_its_process_is_cancelled_comes_to_its_end_and_is_undone(
    definition: type[Workflow], step: str, fails: bool, ran: list[str], back: list[str]
) -> None:
    """One that cannot be undone is not listened to, and one that fails is not tried again."""
    forget()
    process = launch(definition)
    broken: list[str] = []

    def meanwhile() -> None:
        cancel(process.pk, request=asked())
        broken.extend(violations())
        if fails:
            raise AWAY

    during.clear()
    during[step] = meanwhile

    assert (ended(process), broken) == ("cancelled", [])
    assert (done, undone) == (ran, back)
    if not back:
        assert statuses(process)[step] == "cancelled"


@cases(
    "workflow, ran, back",
    (processes.Leg, ["drive"], ["back from 2 days to Nara"]),
    (processes.Visa, [], []),
)
def test_a_step_that_was_just_claimed_when_its_process_is_cancelled(
    workflow: type[Workflow],
    ran: list[str],
    back: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It comes to its end if it can be undone; its worker knew nothing of it when it read the process."""
    forget()
    process = launch(workflow, "Nara", 2)
    usual = Session.of

    def late(run: StepRun, *more: Any) -> Session | None:
        if run.kind != "undo":
            cancel(process.pk, request=asked())
        return usual(run, *more)

    monkeypatch.setattr(Session, "of", late)

    assert ended(process) == "cancelled"
    assert (done, undone) == (ran, back)


def test_a_step_that_a_dead_worker_had_claimed_when_its_process_was_cancelled() -> None:
    """Whoever takes it over cannot tell whether it had begun: it comes to its end, and is undone."""
    process = launch(processes.Leg, "Nara", 2)
    step_runs.claim("default", "dead", 8, 10.0, **CLAIMED)
    cancel(process.pk, request=asked())
    leases.end_leases(["dead"])

    assert ended(process) == "cancelled"
    assert (done, undone) == (["drive"], ["back from 2 days to Nara"])


def test_when_a_branch_fails_what_runs_beside_it_is_undone_too() -> None:
    process = launch(processes.Undoable)
    one_piece()
    assert done == ["plan"]
    faults["hotel"] = BAD

    def meanwhile() -> None:
        del during["flight"]
        drain()  # another worker, at the hotel

    during["flight"] = meanwhile

    assert (go_on(process).status, undone) == ("cancelled", [FLIGHT])
