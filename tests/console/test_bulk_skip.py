"""S6: the step that failed is skipped in many processes, with one result for all of them."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from orchestrator import Permanent
from orchestrator.engine.operations import skip_failed
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance, StepRun
from tests.apps.compensation import processes
from tests.apps.compensation.fixtures import Ask, asked, known, trips
from tests.apps.compensation.journal import faults
from tests.apps.patterns.desk import finished
from tests.services.bulk import a_moment, begun, verdicts, worked_on
from tests.services.client import Client

__all__ = ["asked", "known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

BAD = Permanent("no line")
NARA = {"city": "Nara", "nights": 2}


def failed(step: str, definition: Any = processes.Choice) -> ProcessInstance:
    """Run a process until this step has failed for good."""
    faults[step] = BAD
    process = finished(definition)
    faults.clear()
    assert process.status == "failed"
    return process


def test_s6_3_the_failed_step_of_each_is_skipped(operator: User) -> None:
    some = [failed("plan") for _ in range(2)]
    a_moment()
    operation = worked_on(
        begun(
            operator,
            {"status": "failed"},
            2,
            action="skip_failed",
            given=[NARA],
        )
    )

    assert verdicts(operation) == {"done": 2}
    for process in some:
        process.refresh_from_db()
        assert process.status == "completed"
        assert StepRun.objects.get(instance=process, node="plan").status == "skipped"
    rows = OperatorAction.objects.filter(bulk=operation, action="skip_failed")
    assert [row.after["skipped"] for row in rows] == [{"plan": NARA}] * 2


def test_s6_3_what_is_no_result_of_the_step_is_refused_for_each(operator: User) -> None:
    failed("plan")
    a_moment()
    operation = worked_on(
        begun(operator, {"status": "failed"}, 1, action="skip_failed", given=[7])
    )

    assert verdicts(operation) == {"refused": 1}
    assert "no result of plan" in operation.items.get().detail


def test_a_process_without_a_failed_step_is_left_as_it_is(asked: Ask) -> None:
    process = finished(processes.Trip)
    with pytest.raises(OperationRefused, match="No step of it has failed"):
        skip_failed(process.pk, "x", request=asked())


def test_the_page_asks_for_the_result(operating: Client) -> None:
    failed("plan")
    page = operating.get("/operations/begin/?action=skip_failed&status=failed")

    assert 'name="json"' in page.content.decode()
