"""What comes of a step that fails: another attempt, another way, a redo, or a person who is told why."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from orchestrator.definition import Workflow
from orchestrator.definition.invalid import LONGEST
from orchestrator.models import Incident, Status, StepStatus
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

__all__ = ["flows", "press"]

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("flows"),
]


# Another attempt


def test_an_attempt_that_failed_is_followed_by_another_after_a_stored_pause(
    pauses: list[float],
) -> None:
    process = finished(failing.Flaky, 2)

    run = visit(process, "flaky")
    assert (process.status, run.status, run.owner) == ("retrying", "retrying", "")
    assert run.wake_at is not None
    pause = (run.wake_at - timezone.now()).total_seconds()
    assert 30 < pause <= pauses[0] == 40
    assert "Transient: attempt 1" in run.error

    process = insist(process)
    assert (process.status, results(process)) == ("completed", {"flaky": 3})
    assert not Incident.objects.exists()


def test_the_pauses_grow_and_have_full_jitter(pauses: list[float]) -> None:
    insist(finished(failing.Flaky, 9))

    assert pauses == [40, 80, 160]


def test_attempts_are_used_up_and_people_are_told() -> None:
    process = insist(finished(failing.Flaky, 9))

    run = visit(process, "flaky")
    assert (process.status, run.status, run.attempt) == ("failed", "failed", 4)
    incident = complaint(process)
    assert (incident.step, incident.message) == ("flaky", "Transient: attempt 4")
    assert "Transient: attempt 4" in incident.detail
    assert process.open_steps == 1


def test_each_type_of_error_has_its_own_number_of_attempts() -> None:
    for how, status, attempt in (
        ("transient", "failed", 1),
        ("value", "completed", 6),
        ("", "completed", 1),
    ):
        process = insist(finished(failing.Choosy, how))

        run = visit(process, "choose")
        assert (process.status, run.attempt) == (status, attempt), how


# What a step says of its failure


@pytest.mark.parametrize("way", ["raising", "returning"])
def test_a_step_may_say_when_it_wants_to_be_tried_again(way: str) -> None:
    process = finished(failing.Saying, f"retry by {way}")

    run = visit(process, "say")
    assert run.status == StepStatus.RETRYING
    assert run.wake_at is not None
    pause = (run.wake_at - timezone.now()).total_seconds()
    assert 30 < pause <= 40
    assert "not yet" in run.error
    pass_time(timedelta(seconds=41))
    assert results(go_on(process))["hear"] == 2


def test_a_pause_that_no_date_can_hold_is_the_longest_there_is() -> None:
    process = finished(failing.Saying, "retry at last by raising")

    run = visit(process, "say")
    assert (process.status, run.status) == ("retrying", StepStatus.RETRYING)
    assert run.wake_at is not None
    assert run.wake_at - timezone.now() > LONGEST - timedelta(days=1)


def test_a_pause_that_was_over_before_it_began_is_none() -> None:
    process = finished(failing.Saying, "retry at first by raising")

    assert results(go_on(process))["hear"] == 2


@pytest.mark.parametrize("way", ["raising", "returning"])
def test_a_step_may_say_that_another_attempt_is_of_no_use(way: str) -> None:
    process = finished(failing.Saying, f"permanent by {way}")

    assert (process.status, visit(process, "say").attempt) == ("failed", 1)
    assert complaint(process).message == "Permanent: never"


@pytest.mark.parametrize("way", ["raising", "returning"])
def test_a_step_may_pass_itself_over_with_a_result(way: str) -> None:
    process = finished(failing.Saying, f"skip by {way}")

    run = visit(process, "say")
    assert (run.status, run.result, run.error) == ("skipped", 7, "not needed")
    assert (process.status, results(process)["hear"]) == ("completed", 7)


def test_a_step_may_pass_itself_over_without_a_result() -> None:
    process = finished(failing.Saying, "skip without by raising")

    assert (process.status, results(process)["hear"]) == ("completed", None)


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
    assert incident.step == "doubt"
    assert "measure was done 4 times and its result is still bad" in incident.message


# Another way than failing


@pytest.mark.parametrize(
    ("definition", "given", "way"),
    [
        (p.CatchOne, -1, "failed, explain catches it: Permanent: below zero"),
        (p.TwoOfThree, -1, "failed, its join puts up with it: Permanent: below zero"),
        (p.Tolerant, [-1], "failed, its map puts up with it: Permanent: -1 is"),
    ],
)
def test_a_failure_that_goes_another_way_is_a_warning_that_says_which(
    definition: type[Workflow], given: Any, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert finished(definition, given).status == Status.COMPLETED

    told = [record for record in caplog.records if way in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING"]
    assert "ERROR" not in {record.levelname for record in caplog.records}


def test_a_failure_that_nothing_takes_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    finished(failing.Saying, "permanent by raising")

    told = [record for record in caplog.records if record.levelname == "ERROR"]
    assert ["failed for good" in record.getMessage() for record in told] == [True]


# The bounds of the process itself


def test_the_limit_holds_for_another_way_too(settings: Any) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "TRANSITIONS_LIMIT": 1}

    process = finished(p.CatchOne, -1)

    assert process.status == Status.FAILED
    assert "has made 1 transitions" in complaint(process).message


# Predicates


def test_a_predicate_that_fails_is_the_failure_of_the_step_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = finished(failing.Judging, "error")

    assert process.status == Status.FAILED
    assert complaint(process).step == "judge"


def test_a_predicate_that_fails_on_the_way_after_a_failure_is_told_too() -> None:
    process = finished(failing.Judging, "exit")

    assert process.status == Status.FAILED
    assert "ends programs" in complaint(process).message


def test_statuses_of_steps_that_are_not_reached_are_not_stored() -> None:
    assert set(statuses(finished(failing.Saying, "permanent by raising"))) == {"say"}
