"""Large graphs: they complete, and a step costs the same however many others there are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator.definition import Workflow
from orchestrator.engine.drain import drain
from orchestrator.models import Status, StepStatus
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import finished, launch, results
from tests.apps.patterns.fixtures import flows
from tests.services.sizes import size

__all__ = ["flows"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("flows"),
]


def queries_per_step(workflow: type[Workflow], steps: int, *given: int) -> float:
    """Return how many queries each step of a process needs from its first claim to its end."""
    launch(workflow, *given)
    with CaptureQueriesContext(connection) as queries:
        drain()
    return len(queries) / steps


@pytest.mark.parametrize(
    ("workflow", "width"), [(p.Layered, 1), (p.Layered, 10), (p.WideFan, 0)]
)
def test_a_step_costs_as_many_queries_in_a_large_graph_as_in_a_small_one(
    workflow: type[Workflow], width: int
) -> None:
    layers = {1: (50, 500), 10: (5, 50), 0: (50, 500)}[width]
    given = (width,) if width else ()
    few, many = (
        queries_per_step(workflow, size * (width or 1), size, *given) for size in layers
    )

    assert many <= few * 1.05


def test_a_fan_out_of_a_thousand_comes_together() -> None:
    process = finished(p.WideFan, 1000)

    assert process.status == Status.COMPLETED
    assert results(process)["count_all"] == 1000


@pytest.mark.once
@pytest.mark.timeout(300)
@pytest.mark.full_size("5,000 steps", seconds=180)
def test_a_layered_graph_of_thousands_of_steps_completes() -> None:
    layers = size(20, full=50)
    process = finished(p.Layered, 100, layers)

    assert process.status == Status.COMPLETED
    done = process.step_runs.filter(status=StepStatus.DONE)
    assert done.count() == 100 * layers
