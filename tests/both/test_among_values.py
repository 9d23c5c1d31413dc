"""A condition with many values is one parameter on PostgreSQL, and finds what a list of them does."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.queries.any_of import any_of
from orchestrator.engine.loops.drain import drain
from orchestrator.models import ProcessInstance, StepRun

pytestmark = pytest.mark.django_db(transaction=True)


def test_rows_with_one_of_the_values_are_found() -> None:
    for number in range(3):
        place_order(Destination.EXTERNAL, "50 MWh", f"A-{number}")
    drain()
    keys = list(ProcessInstance.objects.values_list("pk", flat=True))
    wanted = keys[:2]

    found = ProcessInstance.objects.filter(any_of("pk", [*wanted, uuid4()]))
    assert {one.pk for one in found} == set(wanted)
    visits = StepRun.objects.filter(any_of("instance_id", wanted))
    assert {run.instance_id for run in visits} == set(wanted)
    first = StepRun.objects.order_by("pk")[0]
    assert list(StepRun.objects.filter(any_of("pk", [first.pk]))) == [first]


def test_no_values_find_nothing_without_asking() -> None:
    place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    drain()
    with CaptureQueriesContext(connection) as asked:
        assert list(ProcessInstance.objects.filter(any_of("pk", []))) == []
    assert len(asked) == 0


@pytest.mark.skipif(connection.vendor != "postgresql", reason="it has no arrays")
def test_a_thousand_values_are_one_parameter() -> None:
    rows = ProcessInstance.objects.filter(any_of("pk", [uuid4() for _ in range(1000)]))
    assert len(rows.query.sql_with_params()[1]) == 1
