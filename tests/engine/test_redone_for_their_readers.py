"""Results of waits and questions that are got again: what their readers, and the people, are told meanwhile."""

import pytest

from orchestrator.engine.operations import decide
from tests.apps.patterns import lost
from tests.apps.patterns.desk import complaint, finished, go_on, visit, visits
from tests.apps.patterns.fixtures import press
from tests.both.test_joins_of_one_change import rung
from tests.engine.test_workflow_corrupted import (
    WAIT,
    approve,
    held_up,
    spoil,
    told,
)
from tests.services.asking import asked
from tests.services.doing import fresh
from tests.services.operated import knowing

__all__ = ["press", "rung"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("press")]

known = knowing(lost.Answered, lost.Disbelieving, lost.Told)


def test_workers_are_woken_for_the_reader_whose_result_is_taken_from_its_event_again(
    rung: list[str],
) -> None:
    process = told()
    spoil(process, WAIT)
    go_on(process, "press")
    rung.clear()

    assert go_on(process).status == "completed"
    assert rung == ["default"]


def test_the_incident_of_a_reader_is_resolved_as_soon_as_the_decision_is_made_again() -> (
    None
):
    process = held_up()
    incident = complaint(process)
    question = visits(process, "answer")[-1]
    decide(process.pk, question.pk, "no", request=asked())

    assert visit(process, "after_answer").status == "ready"
    assert fresh(incident).resolved_at is not None
    assert incident.resolution == "redone"


def test_a_sound_event_that_its_step_does_not_believe_is_given_to_it_once() -> None:
    process = approve(finished(lost.Disbelieving), "Eve")

    rounds = [(run.round, run.status) for run in visits(process, WAIT)]
    assert rounds == [(1, "done"), (2, "waiting")]
