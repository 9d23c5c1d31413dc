"""The map of a definition shows a fan-out as failed where failed elements have failed its process, as the lists do."""

import pytest

from monitoring.definition.step_counts import step_counts
from monitoring.lists.processes.filters import Filters
from orchestrator.models import ProcessInstance
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import finished
from tests.apps.patterns.fixtures import flows

__all__ = ["flows"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]


def found(process: ProcessInstance, doing: str) -> tuple[int, int]:
    """Return how many processes the map and the list have in the map's step, with an activity."""
    name, step = process.name, "square"
    number = step_counts(process.definition, [step]).number(step, doing)
    rows = Filters(definition=name, step=step, doing=doing).applied()
    return number, rows.count()


def test_a_fan_out_whose_elements_failed_its_process_is_failed() -> None:
    process = finished(p.FanOut, [1, -2, 3])
    assert process.status == "failed"
    assert (found(process, "failed"), found(process, "active")) == ((1, 1), (0, 0))
