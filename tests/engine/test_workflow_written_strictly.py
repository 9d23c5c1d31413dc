"""Results are written as strictly as they are read: a step fails that gives a wrong one, not the one that reads it."""

import pytest

from orchestrator.definition import Workflow
from orchestrator.testing import started
from tests.apps.written_strictly.processes import (
    WORKFLOWS,
    MissingField,
    MissingResult,
    PaintedAlready,
    WrongSkip,
)
from tests.services.cases import cases
from tests.services.operated import knowing

pytestmark = pytest.mark.django_db


known = knowing(*WORKFLOWS)


@cases(
    "workflow, said",
    (MissingField, "the result of survey: rooms: Input should be a valid integer"),
    (MissingResult, "the result of count: Input should be a valid integer"),
    (WrongSkip, "the result of guess: Input should be a valid integer"),
)
def test_a_step_with_a_wrong_result_fails(workflow: type[Workflow], said: str) -> None:
    process = started(workflow, workflow.Input())

    assert process.status == "failed"
    [incident] = process.incidents
    assert incident.startswith(f"InvalidMessage: {said}")
    assert len(process.path) == 1


def test_an_element_that_is_passed_over_without_a_result_is_left_out() -> None:
    process = started(PaintedAlready, PaintedAlready.Input())

    assert (process.status, process.result) == ("completed", 4)
