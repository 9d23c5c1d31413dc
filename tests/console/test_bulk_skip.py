"""S6: the step that failed is skipped in many processes, with one result for all of them."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from orchestrator import Permanent
from orchestrator.engine.operations import skip_failed
from orchestrator.exceptions import OperationRefused
from orchestrator.models import BulkOperation, OperatorAction, ProcessInstance, StepRun
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


def skipped(operator: User, number: int, result: object) -> BulkOperation:
    """Have the step that has failed skipped in so many processes."""
    a_moment()
    about = {"status": "failed"}
    given: dict[str, Any] = {"action": "skip_failed", "given": [result]}
    return worked_on(begun(operator, about, number, **given))


def test_s6_3_the_failed_step_of_each_is_skipped_by_a_result(operator: User) -> None:
    some = [failed("plan") for _ in range(2)]
    wrong = skipped(operator, 2, 7)
    assert verdicts(wrong) == {"refused": 2}
    for item in wrong.items.all():
        assert "no result of plan" in item.detail

    operation = skipped(operator, 2, NARA)

    assert verdicts(operation) == {"done": 2}
    for process in some:
        process.refresh_from_db()
        run = StepRun.objects.get(instance=process, node="plan")
        assert (process.status, run.status) == ("completed", "skipped")
    rows = OperatorAction.objects.filter(bulk=operation, action="skip_failed")
    assert [row.after["skipped"] for row in rows] == [{"plan": NARA}] * 2


def test_a_process_without_a_failed_step_is_left_as_it_is(asked: Ask) -> None:
    process = finished(processes.Trip)
    with pytest.raises(OperationRefused, match="No step of it has failed"):
        skip_failed(process.pk, "x", request=asked())


def test_the_page_asks_for_the_result(operating: Client) -> None:
    failed("plan")

    page = operating.read("/operations/begin/?action=skip_failed&status=failed")
    assert 'name="json"' in page
