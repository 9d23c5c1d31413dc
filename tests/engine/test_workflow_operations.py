"""What operators do to single steps of a workflow: decide, skip, redo, retry."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from orchestrator.engine import operations
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import decide, redo, refusals, resume, retry, skip
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import (
    Checkpoint,
    Incident,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from tests.apps.compensation import journal, processes
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults
from tests.apps.patterns.desk import (
    finished,
    go_on,
    insist,
    launch,
    results,
    statuses,
    visit,
    visits,
)
from tests.services.asking import asked
from tests.services.cases import cases, words
from tests.services.doing import refused
from tests.services.operated import (
    BAD,
    at_once,
    decided,
    failed,
    mended,
    operated,
    outcome,
    press,
    skipped,
    troubled,
)

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

AWAY = ConnectionError("no line")


def possible(process: ProcessInstance, user: Any) -> dict[str, str]:
    """Return for each action why it cannot be done now."""
    return refusals([process], user)[process.pk]


def at_question() -> ProcessInstance:
    """Run a trip until its invoice waits for approval."""
    return finished(processes.Trip)


# Decide


def test_a_decision_is_the_result_of_the_step_that_asked() -> None:
    process = at_question()
    action = decide(process.pk, visit(process, "approve").pk, "yes", request=asked())

    assert outcome(process, "approve") == ("completed", "yes")
    assert results(process)["deliver"] == "delivered 30"
    assert action.after["decided"] == {"approve": "yes"}
    checkpoint = Checkpoint.objects.get(cause=f"operator:{action.key}")
    assert checkpoint.steps == ["approve", "deliver"]


def test_a_step_that_asks_takes_one_of_its_choices_once() -> None:
    process, other = at_question(), finished(processes.Hasty, "Sato")
    run, press = visit(process, "approve"), asked()

    refused("'maybe' is not one of yes, no", decide, process, run.pk, "maybe")
    assert visit(process, "approve").status == "waiting"
    assert OperatorAction.objects.get().result == "refused"
    plan, elsewhere = visit(process, "plan").pk, visit(other, "approve").pk
    over = "plan is over meanwhile: done"
    refused(over, decide, process, plan, "yes", error=StaleRevision)
    refused("the process has no step run", decide, process, elsewhere, "yes")

    first = decide(process.pk, run.pk, "yes", request=press)
    assert decide(process.pk, run.pk, "yes", request=press) == first
    refused("No step asks for a decision", decide, process, run.pk, "no")
    assert outcome(process, "approve") == ("completed", "yes")


# Skip


@cases("error, status", (BAD, "failed"), (AWAY, "retrying"))
def test_a_step_that_failed_or_waits_for_another_attempt_is_skipped_with_a_result(
    error: Exception, status: str
) -> None:
    process = troubled(processes.Trip, hotel=error)
    assert process.status == status
    done.clear()
    skipped(process, "hotel", "at a friend's")

    run = visit(process, "hotel")
    assert (run.status, run.result) == ("skipped", "at a friend's")
    invoice = len("flight to Nara") + len("at a friend's")
    assert outcome(process, "invoice") == ("waiting", invoice)
    assert "hotel" not in done
    assert not Incident.objects.open().exists()
    journal.forget()


def test_the_result_must_be_of_the_steps_type() -> None:
    process = failed("plan")
    run, ise = visit(process, "plan"), {"city": "Ise", "nights": 2}

    for changed in ({"nights": "2"}, {"country": "JP"}):
        why = f"no result of plan: {next(iter(changed))}: "
        refused(why, skip, process, run.pk, {**ise, **changed})
    skipped(process, "plan", ise)
    assert results(process)["flight"] == "flight to Ise"


def test_a_question_and_a_wait_are_skipped_with_what_they_wait_for() -> None:
    assert skipped(at_question(), "approve", "no").status == "completed"

    visa, wait = finished(processes.Visa), "wait_for_visa_granted"
    refused("number: ", skip, visa, visit(visa, wait).pk, {})
    skipped(visa, wait, {"number": "V-1"})
    assert outcome(visa, "show") == ("completed", "V-1")


def test_an_element_of_a_map_is_skipped_with_its_result() -> None:
    process = troubled(processes.Block, "Ito", 4, **{"reserve 2": BAD})
    assert results(process)["total"] == 3  # one failure is tolerated

    process = troubled(processes.Block, "Ito", 4, **{"reserve 3": BAD})
    run = process.step_runs.get(item=2)
    assert (process.status, run.status) == ("failed", "failed")
    refused("a valid string", skip, process, run.pk, 3)

    operated(skip, process, run.pk, "tent")
    assert outcome(process, "total") == ("completed", 3)


def test_an_element_that_is_not_its_turn_is_skipped_without_making_room() -> None:
    process = launch(processes.Block, "Ito", 6)
    faults.update({f"reserve {n}": AWAY for n in (1, 2)})
    drain()
    ready = process.step_runs.filter(kind="item").exclude(status="waiting")
    assert ready.count() == 2
    last = process.step_runs.get(item=5)
    skip(process.pk, last.pk, "tent", request=asked())

    assert ready.exclude(pk=last.pk).count() == 2
    assert mended(process).status == "completed"
    assert "reserve 6" not in done


def test_what_cannot_be_skipped_is_said() -> None:
    block = failed("reserve 1", "reserve 2", of=processes.Block)
    head = block.step_runs.get(kind="map")
    refused("stands for all its elements", skip, block, head.pk, [])
    process = failed("hotel")
    join = visit(process, "invoice").pk
    refused("waits for the steps before it", skip, process, join, 1)

    process = launch(processes.Trip, "Sato")
    runs = StepRun.objects.filter(instance=process)
    runs.update(status="running", owner="w", attempt=1)
    plan = visit(process, "plan").pk
    refused("plan is running, in attempt 1", skip, process, plan, None)
    runs.update(status="ready", owner="", attempt=0)


def test_a_result_that_leads_nowhere_is_refused() -> None:
    process = failed("plan", of=processes.Choice)
    rome, osaka = ({"city": city, "nights": 1} for city in ("Rome", "Osaka"))
    plan, nowhere = visit(process, "plan").pk, r"cannot go on from plan .*no case"

    refused(nowhere, skip, process, plan, rome)
    assert visit(process, "plan").status == "failed"
    assert statuses(skipped(process, "plan", osaka))["flight"] == "done"


def test_a_visit_of_a_loop_is_skipped_and_the_loop_goes_on() -> None:
    process = insist(troubled(processes.Search, search=AWAY))
    faults.clear()
    skipped(process, "search", 2)

    assert [run.status for run in visits(process, "search")] == ["skipped", "done"]
    assert outcome(process, "choose") == ("completed", 3)


# Redo


def test_one_step_is_done_again_alone_any_number_of_times() -> None:
    process = at_question()
    done.clear()
    for _ in range(3):
        redo(process.pk, "hotel", request=asked())
        refused("being redone already", redo, process, "hotel")
        go_on(process)

    assert done == ["hotel"] * 3
    rounds = [(run.round, run.status) for run in visits(process, "hotel")]
    assert rounds == [(number, "done") for number in (1, 2, 3, 4)]
    assert (process.status, process.open_steps) == ("waiting", 1)


def test_what_is_read_later_is_the_result_of_the_last_round() -> None:
    process = at_question()
    runs = process.step_runs.filter(node="invoice")
    runs.update(result=1000)  # somebody broke it
    operated(redo, process, "invoice")

    assert outcome(decided(process), "deliver") == ("completed", "delivered 30")


def test_of_a_map_the_elements_with_bad_results_are_redone() -> None:
    process = failed("pay", of=processes.Block, given=("Ito", 3))
    done.clear()
    process.step_runs.filter(item=1).update(result="torn")
    operated(redo, process, "reserve")
    assert done == ["reserve 2"]

    done.clear()
    operated(redo, process, "reserve")
    assert sorted(done) == ["reserve 1", "reserve 2", "reserve 3"]


def test_a_redo_that_fails_waits_for_a_person_and_undoes_nothing() -> None:
    process = finished(processes.Undoable)
    faults["plan"] = BAD
    assert operated(redo, process, "plan").status == "failed"
    assert journal.undone == []

    nara = {"city": "Nara", "nights": 2}
    assert skipped(process, "plan", nara).status == "waiting"


@cases(
    "node, why",
    ("hostel", "the running code has no step hostel"),
    ("approve", "done by somebody else"),
    ("hotel", "not finished: retry or skip it"),
    ("deliver", "no result"),
)
def test_what_cannot_be_redone_is_said(node: str, why: str) -> None:
    process = failed("hotel") if node == "hotel" else at_question()
    refused(why, redo, process, node)


# Retry


@cases("error, told", (BAD, ["retried by an operator"]), (AWAY, []))
def test_retry_gives_a_step_all_its_attempts_again_and_waits_for_no_pause(
    error: Exception, told: list[str]
) -> None:
    process = troubled(processes.Trip, hotel=error)
    faults.clear()
    action = retry(process.pk, request=asked())
    run = visit(process, "hotel")
    assert (run.status, run.attempt) == ("ready", 0)
    assert action.after["status"] == "running"

    assert (go_on(process).status, statuses(process)["hotel"]) == ("waiting", "done")
    assert list(Incident.objects.values_list("resolution", flat=True)) == told


@cases("how", "retry", "skip", "resume")
def test_what_the_failure_has_cancelled_is_brought_back(how: str) -> None:
    process = failed("flight", of=processes.Hasty)
    assert statuses(process)["hotel"] == "cancelled"
    done.clear()
    if how == "retry":
        operated(retry, process)
    elif how == "skip":
        skipped(process, "flight", "by train")
    else:
        operated(resume, process, process.revision)

    assert (process.status, statuses(process)["hotel"]) == ("waiting", "done")
    assert (decided(process).status, done.count("rest")) == ("completed", 1)


def test_a_question_that_was_cancelled_asks_again() -> None:
    process = troubled(processes.Hasty, flight=AWAY)
    assert visit(process, "approve").status == "waiting"
    faults["flight"] = BAD
    operated(retry, process)
    assert visit(process, "approve").status == "cancelled"

    run = visit(mended(process), "approve")
    assert (run.status, run.left, run.finished_at) == ("waiting", None, None)
    assert run.wake_at is not None


# For all of them

ACTIONS: dict[str, Callable[[ProcessInstance, Any], OperatorAction]] = {
    "retry": lambda p, r: retry(p.pk, request=r),
    "cancel": lambda p, r: operations.cancel(p.pk, request=r),
    "redo": lambda p, r: redo(p.pk, "plan", request=r),
    "resume": lambda p, r: resume(p.pk, 1, request=r),
    "skip": lambda p, r: skip(p.pk, visit(p, "hotel").pk, "tent", request=r),
    "restart": lambda p, r: operations.restart(p.pk, {"name": "Ito"}, request=r),
}


def test_every_action_needs_its_permission(viewer: User) -> None:
    process = failed("hotel")
    said = possible(process, viewer)
    for name, action in ACTIONS.items():
        with pytest.raises(PermissionMissing):
            action(process, asked(actor=viewer))
        assert said[name] == str(PermissionMissing())


@cases("action", *ACTIONS)
def test_every_action_is_done_once_on_an_up_to_date_page_however_often_it_is_pressed(
    action: str,
) -> None:
    process = failed("hotel")
    stale = process.revision
    operations.escalate(process.pk, request=asked())
    with pytest.raises(StaleRevision, match="operator did escalate"):
        ACTIONS[action](process, asked(expected_revision=stale))
    process.refresh_from_db()
    assert process.revision == stale + 1

    press = asked(expected_revision=process.revision)
    first = ACTIONS[action](process, press)
    assert ACTIONS[action](process, press) == first
    assert first.before["revision"] == process.revision
    process.refresh_from_db()
    assert process.revision == first.after["revision"]


def test_an_ended_process_is_left_alone() -> None:
    process = decided(at_question())
    said = possible(process, asked().actor)
    for name in ("retry", "cancel", "redo", "resume", "skip"):
        assert said[name].startswith(("The process has ended", "Nothing has failed"))
        with pytest.raises(OperationRefused, match=said[name]):
            ACTIONS[name](process, asked())


ALWAYS = """escalate assign extend pause cancel redo resume skip decide repair propose_repair
    approve_repair decline_repair migrate"""


def test_what_is_possible_is_said_for_every_action() -> None:
    operator = asked().actor
    assert possible(at_question(), operator) == {
        **dict.fromkeys(words(ALWAYS), ""),
        "retry": "Nothing has failed",
        "acknowledge": "It is not escalated",
        "nudge": "It waits as designed",
        "unpause": "It is not paused",
        "skip_command": "No command has failed",
        "skip_failed": "No step of it has failed",
        "restart": "The process is still going on: cancel it first, or wait for its end",
    }
    said = possible(failed("plan", of=processes.Choice), operator)
    now = {action for action, why in said.items() if not why}
    more = {"retry", "skip_failed", "restart"}
    assert now == {*words(ALWAYS)} - {"redo", "decide"} | more
    assert said["redo"] == "No step is done yet"
    assert said["decide"] == "No step asks for a decision"


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_one_decides() -> None:
    process = at_question()
    run, seen = visit(process, "approve"), process.revision
    yes = press(decide, process, run.pk, "yes", expected_revision=seen)
    no = press(decide, process, run.pk, "no", expected_revision=seen)
    (late,) = at_once(yes, no)

    assert isinstance(late, StaleRevision)
    assert "operator did decide" in str(late)
    assert go_on(process).status == "completed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", ["cancel", "resume"])
def test_operators_and_workers_do_not_get_in_each_others_way(action: str) -> None:
    for number in range(4):
        process = launch(processes.Group, f"P-{number}", 12)
        act = partial(ACTIONS[action], process, asked())
        at_once(drain, drain, act)

        assert go_on(process).status in ("cancelled", "completed")
        assert process.open_steps == 0
