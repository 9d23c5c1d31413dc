"""What operators do to single steps of a workflow: decide, skip, redo, retry."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from orchestrator import Permanent
from orchestrator.engine import operations
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import decide, redo, refusals, retry, skip
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
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
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

BAD = Permanent("no line")


def possible(process: ProcessInstance, user: Any) -> dict[str, str]:
    """Return for each action why it cannot be done now."""
    return refusals([process], user)[process.pk]


def failed(step: str, definition: Any = processes.Trip) -> ProcessInstance:
    """Run a process until this step has failed for good; another attempt would work."""
    faults[step] = BAD
    process = finished(definition)
    faults.clear()
    assert process.status == "failed"
    return process


def at_question() -> ProcessInstance:
    """Run a trip until its invoice waits for approval."""
    return finished(processes.Trip)


# Decide


def test_a_decision_is_the_result_of_the_step_that_asked() -> None:
    process = at_question()
    action = decide(process.pk, visit(process, "approve").pk, "yes", request=asked())
    process = go_on(process)

    assert (process.status, results(process)["approve"]) == ("completed", "yes")
    assert results(process)["deliver"] == "delivered 30"
    assert action.after["decided"] == {"approve": "yes"}
    checkpoint = Checkpoint.objects.get(cause=f"operator:{action.key}")
    assert checkpoint.steps == ["approve", "deliver"]


def test_a_step_that_asks_takes_one_of_its_choices_once() -> None:
    process, other = at_question(), finished(processes.Hasty, "Sato")
    run, press = visit(process, "approve"), asked()

    with pytest.raises(OperationRefused, match="'maybe' is not one of yes, no"):
        decide(process.pk, run.pk, "maybe", request=asked())
    run.refresh_from_db()
    assert (run.status, OperatorAction.objects.get().result) == ("waiting", "refused")
    with pytest.raises(StaleRevision, match="plan is over meanwhile: done"):
        decide(process.pk, visit(process, "plan").pk, "yes", request=asked())
    with pytest.raises(OperationRefused, match="the process has no step run"):
        decide(process.pk, visit(other, "approve").pk, "yes", request=asked())

    first = decide(process.pk, run.pk, "yes", request=press)
    assert decide(process.pk, run.pk, "yes", request=press) == first
    with pytest.raises(OperationRefused, match="No step asks for a decision"):
        decide(process.pk, run.pk, "no", request=asked())
    process = go_on(process)
    assert (process.status, results(process)["approve"]) == ("completed", "yes")


# Skip


@pytest.mark.parametrize("error", [BAD, ConnectionError("no line")])
def test_a_step_that_failed_or_waits_for_another_attempt_is_skipped_with_a_result(
    error: Exception,
) -> None:
    faults["hotel"] = error
    process = finished(processes.Trip)
    assert process.status == ("failed" if error is BAD else "retrying")
    run = visit(process, "hotel")
    skip(process.pk, run.pk, "at a friend's", request=asked())
    process = go_on(process)

    run.refresh_from_db()
    assert (run.status, run.result) == ("skipped", "at a friend's")
    assert results(process)["invoice"] == len("flight to Nara") + len("at a friend's")
    assert (process.status, "hotel" in done) == ("waiting", False)
    assert not Incident.objects.open().exists()


def test_the_result_must_be_of_the_steps_type() -> None:
    process = failed("plan")
    run = visit(process, "plan")

    with pytest.raises(OperationRefused, match=r"no result of plan: nights: "):
        skip(process.pk, run.pk, {"city": "Ise", "nights": "2"}, request=asked())
    with pytest.raises(OperationRefused, match=r"no result of plan: country: "):
        skip(
            process.pk,
            run.pk,
            {"city": "Ise", "nights": 2, "country": "JP"},
            request=asked(),
        )
    skip(process.pk, run.pk, {"city": "Ise", "nights": 2}, request=asked())
    assert results(go_on(process))["flight"] == "flight to Ise"


def test_a_question_and_a_wait_are_skipped_with_what_they_wait_for() -> None:
    process = at_question()
    skip(process.pk, visit(process, "approve").pk, "no", request=asked())
    assert go_on(process).status == "completed"

    visa = finished(processes.Visa)
    waiting = visit(visa, "wait_for_visa_granted")
    with pytest.raises(OperationRefused, match="number: "):
        skip(visa.pk, waiting.pk, {}, request=asked())
    skip(visa.pk, waiting.pk, {"number": "V-1"}, request=asked())
    visa = go_on(visa)
    assert (visa.status, results(visa)["show"]) == ("completed", "V-1")


def test_an_element_of_a_map_is_skipped_with_its_result() -> None:
    faults["reserve 2"] = BAD
    process = finished(processes.Block, "Ito", 4)
    faults["reserve 3"] = BAD
    assert results(process)["total"] == 3  # one failure is tolerated

    process = finished(processes.Block, "Ito", 4)
    run = process.step_runs.get(item=2)
    assert (process.status, run.status) == ("failed", "failed")
    with pytest.raises(OperationRefused, match="a valid string"):
        skip(process.pk, run.pk, 3, request=asked())
    skip(process.pk, run.pk, "tent", request=asked())

    process = go_on(process)
    assert (process.status, results(process)["total"]) == ("completed", 3)


def test_an_element_that_is_not_its_turn_is_skipped_without_making_room() -> None:
    process = launch(processes.Block, "Ito", 6)
    faults.update({f"reserve {n}": ConnectionError("no line") for n in (1, 2)})
    drain()
    ready = process.step_runs.filter(kind="item").exclude(status="waiting")
    assert ready.count() == 2
    last = process.step_runs.get(item=5)
    skip(process.pk, last.pk, "tent", request=asked())

    assert ready.exclude(pk=last.pk).count() == 2
    faults.clear()
    process.refresh_from_db()
    retry(process.pk, request=asked())
    assert go_on(process).status == "completed"
    assert "reserve 6" not in done


def test_the_head_of_a_map_and_a_join_are_not_skipped() -> None:
    faults["reserve 1"] = faults["reserve 2"] = BAD
    process = finished(processes.Block)
    head = process.step_runs.get(kind="map")
    with pytest.raises(OperationRefused, match="stands for all its elements"):
        skip(process.pk, head.pk, [], request=asked())

    process = failed("hotel")
    with pytest.raises(OperationRefused, match="waits for the steps before it"):
        skip(process.pk, visit(process, "invoice").pk, 1, request=asked())


def test_a_running_step_is_not_skipped() -> None:
    process = launch(processes.Trip)
    StepRun.objects.update(status="running", owner="w", attempt=1)
    with pytest.raises(OperationRefused, match="plan is running, in attempt 1"):
        skip(process.pk, visit(process, "plan").pk, None, request=asked())
    StepRun.objects.update(status="ready", owner="", attempt=0)


def test_a_result_that_leads_nowhere_is_refused() -> None:
    process = failed("plan", processes.Choice)
    run = visit(process, "plan")

    with pytest.raises(OperationRefused, match=r"cannot go on from plan .*no case"):
        skip(process.pk, run.pk, {"city": "Rome", "nights": 1}, request=asked())
    run.refresh_from_db()
    assert run.status == "failed"
    skip(process.pk, run.pk, {"city": "Osaka", "nights": 1}, request=asked())
    assert statuses(go_on(process))["flight"] == "done"


def test_a_visit_of_a_loop_is_skipped_and_the_loop_goes_on() -> None:
    faults["search"] = ConnectionError("no line")
    process = insist(finished(processes.Search))
    faults.clear()
    skip(process.pk, visit(process, "search").pk, 2, request=asked())
    process = go_on(process)

    assert [run.status for run in visits(process, "search")] == ["skipped", "done"]
    assert (process.status, results(process)["choose"]) == ("completed", 3)


# Redo


def test_one_step_is_done_again_alone_any_number_of_times() -> None:
    process = at_question()
    done.clear()
    for _ in range(3):
        redo(process.pk, "hotel", request=asked())
        with pytest.raises(OperationRefused, match="being redone already"):
            redo(process.pk, "hotel", request=asked())
        process = go_on(process)

    assert done == ["hotel"] * 3
    rounds = [(run.round, run.status) for run in visits(process, "hotel")]
    assert rounds == [(number, "done") for number in (1, 2, 3, 4)]
    assert (process.status, process.open_steps) == ("waiting", 1)


def test_what_is_read_later_is_the_result_of_the_last_round() -> None:
    process = at_question()
    first = visit(process, "invoice")
    StepRun.objects.filter(pk=first.pk).update(result=1000)  # somebody broke it
    redo(process.pk, "invoice", request=asked())
    process = go_on(process)
    decide(process.pk, visit(process, "approve").pk, "yes", request=asked())

    process = go_on(process)
    assert (process.status, results(process)["deliver"]) == (
        "completed",
        "delivered 30",
    )


def test_of_a_map_the_elements_with_bad_results_are_redone() -> None:
    faults["pay"] = BAD
    process = finished(processes.Block, "Ito", 3)
    faults.clear()
    done.clear()
    process.step_runs.filter(item=1).update(result="torn")
    redo(process.pk, "reserve", request=asked())
    go_on(process)
    assert done == ["reserve 2"]

    done.clear()
    process.refresh_from_db()
    redo(process.pk, "reserve", request=asked())
    go_on(process)
    assert sorted(done) == ["reserve 1", "reserve 2", "reserve 3"]


def test_a_redo_that_fails_waits_for_a_person_and_undoes_nothing() -> None:
    process = finished(processes.Undoable)
    faults["plan"] = BAD
    redo(process.pk, "plan", request=asked())
    process = go_on(process)
    assert (process.status, journal.undone) == ("failed", [])

    run = visits(process, "plan")[-1]
    skip(process.pk, run.pk, {"city": "Nara", "nights": 2}, request=asked())
    process.refresh_from_db()
    assert process.status == "waiting"


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("hostel", "the running code has no step hostel"),
        ("approve", "done by somebody else"),
        ("hotel", "not finished: retry or skip it"),
        ("deliver", "no result"),
    ],
)
def test_what_cannot_be_redone_is_said(node: str, why: str) -> None:
    process = failed("hotel") if node == "hotel" else at_question()
    with pytest.raises(OperationRefused, match=why):
        redo(process.pk, node, request=asked())


# Retry


@pytest.mark.parametrize("error", [BAD, ConnectionError("no line")])
def test_retry_gives_a_step_all_its_attempts_again_and_waits_for_no_pause(
    error: Exception,
) -> None:
    faults["hotel"] = error
    process = finished(processes.Trip)
    faults.clear()
    action = retry(process.pk, request=asked())
    run = visit(process, "hotel")
    assert (run.status, run.attempt) == ("ready", 0)
    assert action.after["status"] == "running"

    process = go_on(process)
    assert (process.status, statuses(process)["hotel"]) == ("waiting", "done")
    told = Incident.objects.values_list("resolution", flat=True)
    assert list(told) == (["retried by an operator"] if error is BAD else [])


def test_retry_brings_back_what_the_failure_has_cancelled() -> None:
    process = failed("flight", processes.Hasty)
    assert statuses(process)["hotel"] == "cancelled"
    retry(process.pk, request=asked())
    process = go_on(process)

    assert (process.status, statuses(process)["hotel"]) == ("waiting", "done")
    decide(process.pk, visit(process, "approve").pk, "yes", request=asked())
    process = go_on(process)
    assert (process.status, done.count("rest")) == ("completed", 1)


def test_a_question_that_was_cancelled_asks_again() -> None:
    faults["flight"] = ConnectionError("no line")
    process = finished(processes.Hasty)
    assert statuses(process)["approve"] == "waiting"
    faults["flight"] = BAD
    retry(process.pk, request=asked())
    assert statuses(go_on(process))["approve"] == "cancelled"
    faults.clear()
    process.refresh_from_db()
    retry(process.pk, request=asked())

    run = visit(go_on(process), "approve")
    assert (run.status, run.left, run.finished_at) == ("waiting", None, None)
    assert run.wake_at is not None


def test_skipping_brings_back_what_the_failure_has_cancelled() -> None:
    process = failed("flight", processes.Hasty)
    skip(process.pk, visit(process, "flight").pk, "by train", request=asked())

    assert statuses(go_on(process))["approve"] == "waiting"


# For all of them

ACTIONS: dict[str, Callable[[ProcessInstance, Any], OperatorAction]] = {
    "retry": lambda p, r: retry(p.pk, request=r),
    "cancel": lambda p, r: operations.cancel(p.pk, request=r),
    "redo": lambda p, r: redo(p.pk, "plan", request=r),
    "resume": lambda p, r: operations.resume(p.pk, 1, request=r),
    "skip": lambda p, r: skip(p.pk, visit(p, "hotel").pk, "tent", request=r),
    "restart": lambda p, r: operations.restart(
        p.pk, {"name": "Ito", "nights": 3}, request=r
    ),
}


def test_every_action_needs_its_permission(viewer: User) -> None:
    process = failed("hotel")
    said = possible(process, viewer)
    for name, action in ACTIONS.items():
        with pytest.raises(PermissionMissing):
            action(process, asked(actor=viewer))
        assert said[name] == str(PermissionMissing())


@pytest.mark.parametrize("action", ACTIONS)
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
    process = at_question()
    run = visit(process, "approve")
    decide(process.pk, run.pk, "yes", request=asked())
    process = go_on(process)

    calls: dict[str, Any] = {
        **ACTIONS,
        "skip": lambda p, r: skip(p.pk, run.pk, "no", request=r),
    }
    possible_now = possible(process, asked().actor)
    for name in ("retry", "cancel", "redo", "resume", "skip"):
        said = possible_now[name]
        assert said.startswith(("The process has ended", "Nothing has failed"))
        with pytest.raises(OperationRefused, match=said):
            calls[name](process, asked())


def test_what_is_possible_is_said_for_every_action() -> None:
    operator = asked().actor
    assert possible(at_question(), operator) == {
        "retry": "Nothing has failed",
        "escalate": "",
        "assign": "",
        "acknowledge": "It is not escalated",
        "extend": "",
        "nudge": "It waits as designed",
        "pause": "",
        "unpause": "It is not paused",
        "cancel": "",
        "redo": "",
        "resume": "",
        "skip": "",
        "skip_command": "No command has failed",
        "skip_failed": "No step of it has failed",
        "decide": "",
        "repair": "",
        "propose_repair": "",
        "approve_repair": "",
        "decline_repair": "",
        "migrate": "",
        "restart": "The process is still going on: cancel it first, or wait for its end",
    }
    journal.forget()
    said = possible(failed("plan", processes.Choice), operator)
    assert {action for action, why in said.items() if not why} == {
        "retry", "escalate", "cancel", "resume", "skip", "restart", "pause", "assign",
        "extend", "skip_failed", "repair", "propose_repair", "approve_repair", "decline_repair",
        "migrate",
    }  # fmt: skip
    assert (said["redo"], said["decide"]) == (
        "No step is done yet",
        "No step asks for a decision",
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_one_decides() -> None:
    process = at_question()
    run, seen = visit(process, "approve"), process.revision
    answers = together(
        partial(
            decide, process.pk, run.pk, "yes", request=asked(expected_revision=seen)
        ),
        partial(
            decide, process.pk, run.pk, "no", request=asked(expected_revision=seen)
        ),
    )
    (refused,) = raised(answers)

    assert isinstance(refused, StaleRevision)
    assert "operator did decide" in str(refused)
    assert go_on(process).status == "completed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", ["cancel", "resume"])
def test_operators_and_workers_do_not_get_in_each_others_way(action: str) -> None:
    for number in range(4):
        process = launch(processes.Group, f"P-{number}", 12)
        act = partial(ACTIONS[action], process, asked())
        outcomes = together(drain, drain, act)
        assert all(isinstance(e, OperationRefused) for e in raised(outcomes))
        process = go_on(process)

        assert process.status in ("cancelled", "completed")
        assert process.open_steps == 0
