"""What comes of a step that fails: another attempt, another way, a redo, or a person who is told why."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from orchestrator.definition import Workflow
from orchestrator.definition.refusals import LONGEST
from orchestrator.models import Incident, ProcessInstance, Status, StepStatus
from orchestrator.testing import pass_time
from tests.apps.patterns import failing
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import (
    complaint,
    finished,
    go_on,
    insist,
    results,
    statuses,
    visit,
)
from tests.apps.patterns.fixtures import flows, press
from tests.apps.patterns.ledger import noted
from tests.services.cases import cases
from tests.services.operated import outcome

__all__ = ["flows", "press"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]


def pause_before(process: ProcessInstance, node: str) -> float:
    """Return for how many seconds a step still waits for another attempt."""
    wake_at = visit(process, node).wake_at
    assert wake_at is not None
    return (wake_at - timezone.now()).total_seconds()


# Another attempt


def test_a_failed_attempt_is_followed_by_one_after_a_pause(pauses: list[float]) -> None:
    process = finished(failing.Flaky, 2)

    run = visit(process, "flaky")
    assert (process.status, run.status, run.owner) == ("retrying", "retrying", "")
    assert pauses == [40]
    assert 30 < pause_before(process, "flaky") <= 40
    assert "Transient: attempt 1" in run.error

    assert (insist(process).status, results(process)) == ("completed", {"flaky": 3})
    assert not Incident.objects.exists()


def test_pauses_grow_and_in_the_end_people_are_told(pauses: list[float]) -> None:
    process = insist(finished(failing.Flaky, 9))

    assert pauses == [40, 80, 160]
    run = visit(process, "flaky")
    assert (process.status, run.status, run.attempt) == ("failed", "failed", 4)
    assert process.open_steps == 1
    incident = complaint(process)
    assert (incident.step, incident.message) == ("flaky", "Transient: attempt 4")
    assert incident.message in incident.detail


def test_each_type_of_error_has_its_own_number_of_attempts() -> None:
    found = {}
    for how in ("transient", "value", ""):
        process = insist(finished(failing.Choosy, how))
        found[how] = process.status, visit(process, "choose").attempt

    once = {"transient": ("failed", 1), "": ("completed", 1)}
    assert found == {**once, "value": ("completed", 6)}


# What a step says of its failure


@pytest.mark.parametrize("way", ["raising", "returning"])
def test_a_step_may_say_when_it_wants_to_be_tried_again(way: str) -> None:
    process = finished(failing.Saying, f"retry by {way}")

    run = visit(process, "say")
    assert run.status == StepStatus.RETRYING
    assert 30 < pause_before(process, "say") <= 40
    assert "not yet" in run.error
    pass_time(timedelta(seconds=41))
    assert results(go_on(process))["hear"] == 2


def test_a_pause_no_date_can_hold_is_the_longest_and_one_that_is_over_none() -> None:
    process = finished(failing.Saying, "retry at last by raising")

    assert process.status == visit(process, "say").status == "retrying"
    assert pause_before(process, "say") > LONGEST.total_seconds() - 86_400

    process = finished(failing.Saying, "retry at first by raising")
    assert results(process)["hear"] == 2


@pytest.mark.parametrize("way", ["raising", "returning"])
def test_a_step_may_say_that_another_attempt_is_of_no_use(way: str) -> None:
    process = finished(failing.Saying, f"permanent by {way}")

    assert (process.status, visit(process, "say").attempt) == ("failed", 1)
    assert complaint(process).message == "Permanent: never"


@cases(
    "how, result",
    ("skip by raising", 7),
    ("skip by returning", 7),
    ("skip without by raising", None),
)
def test_a_step_may_skip_itself_with_a_result(how: str, result: int | None) -> None:
    process = finished(failing.Saying, how)

    run = visit(process, "say")
    assert (run.status, run.result, run.error) == ("skipped", result, "not needed")
    assert outcome(process, "hear") == ("completed", result)


# An earlier result is bad


def test_a_step_may_have_an_earlier_one_redone_at_no_charge() -> None:
    process = finished(failing.Doubting, 1)

    assert process.status == Status.COMPLETED
    assert noted() == {"measure": 2, "believe": 1, "doubt": 2}
    assert visit(process, "doubt").attempt == 1


def test_a_step_that_is_never_content_is_an_incident_in_the_end() -> None:
    process = finished(failing.Doubting, -1)

    assert process.status == Status.FAILED
    assert noted()["measure"] == 4
    incident = complaint(process)
    assert (incident.step, incident.kind) == ("doubt", "corrupted_data")
    assert "measure was done 4 times and its result is still bad" in incident.message


# Another way than failing


@cases(
    "definition, given, way",
    (p.CatchOne, -1, "failed, explain catches it: Permanent: below zero"),
    (p.TwoOfThree, -1, "failed, its join puts up with it: Permanent: below zero"),
    (p.Tolerant, [-1], "failed, its map puts up with it: Permanent: -1 is"),
)
def test_a_failure_that_goes_another_way_is_a_warning_that_says_which(
    definition: type[Workflow], given: Any, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert finished(definition, given).status == Status.COMPLETED

    told = [record for record in caplog.records if way in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING"]
    assert "ERROR" not in {record.levelname for record in caplog.records}


def test_a_failure_nothing_takes_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    process = finished(failing.Saying, "permanent by raising")

    assert set(statuses(process)) == {"say"}  # nothing is stored of what follows
    told = [record for record in caplog.records if record.levelname == "ERROR"]
    assert ["failed for good" in record.getMessage() for record in told] == [True]


# Predicates


@cases("how, step, said", ("error", "judge", ""), ("exit", "", "ends programs"))
def test_a_predicate_that_fails_is_told_of_the_step_before_it_and_after_a_failure(
    how: str, step: str, said: str
) -> None:
    process = finished(failing.Judging, how)

    assert process.status == Status.FAILED
    assert step in complaint(process).step
    assert said in complaint(process).message
