"""Large graphs: they complete, and a step costs the same however many others there are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator.definition import Workflow
from orchestrator.engine.loops.drain import drain
from orchestrator.models import Status, StepStatus
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import finished, launch, results
from tests.apps.patterns.fixtures import flows
from tests.services.sizes import size

__all__ = ["flows"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]


def queries_per_step(workflow: type[Workflow], steps: int, *given: int) -> float:
    """Return how many queries each step of a process needs from its first claim to its end."""
    launch(workflow, *given)
    with CaptureQueriesContext(connection) as queries:
        drain()
    return len(queries) / steps


SIZES = {
    1: (20, size(100, full=500)),
    10: (3, size(15, full=50)),
    0: (20, size(200, full=500)),
}
"""Layers of a graph with a small and a large one, by their width; none is a fan-out."""


@pytest.mark.full_size("500 steps", seconds=180)
@pytest.mark.parametrize(
    ("workflow", "width"), [(p.Layered, 1), (p.Layered, 10), (p.WideFan, 0)]
)
def test_a_step_costs_as_many_queries_in_a_large_graph_as_in_a_small_one(
    workflow: type[Workflow], width: int
) -> None:
    layers = SIZES[width]
    given = (width,) if width else ()
    few, many = (
        queries_per_step(workflow, number * (width or 1), number, *given)
        for number in layers
    )

    assert many <= few * 1.05


@pytest.mark.django_db(transaction=True)
@pytest.mark.full_size("1,000 elements", seconds=60)
def test_a_fan_out_of_hundreds_comes_together() -> None:
    elements = size(300, full=1_000)
    process = finished(p.WideFan, elements)

    assert process.status == Status.COMPLETED
    assert results(process)["count_all"] == elements


@pytest.mark.once
@pytest.mark.timeout(300)
@pytest.mark.full_size("5,000 steps", seconds=180)
def test_a_layered_graph_of_thousands_of_steps_completes() -> None:
    layers = size(3, full=50)
    process = finished(p.Layered, 100, layers)

    assert process.status == Status.COMPLETED
    done = process.step_runs.filter(status=StepStatus.DONE)
    assert done.count() == 100 * layers
