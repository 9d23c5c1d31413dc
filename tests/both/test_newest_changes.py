"""How far followed processes have come is asked once for all of them, and told like the change that was lost."""

from uuid import UUID, uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.live.newest_changes import changes_after
from orchestrator.engine.loops.drain import drain
from orchestrator.models import ProcessInstance
from tests.apps.long_work.fixtures import long_work
from tests.apps.long_work.processes import LongStep
from tests.apps.patterns.desk import finished

__all__ = ["long_work"]

pytestmark = pytest.mark.django_db


def order() -> ProcessInstance:
    receipt = place_order(Destination.INTERNAL, "50 MWh")
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def behind(*processes: ProcessInstance) -> dict[UUID, int]:
    return {process.pk: process.revision - 1 for process in processes}


def test_the_newest_change_of_each_that_has_come_further_is_told() -> None:
    here, there = order(), order()

    known = {**behind(here), there.pk: there.revision, uuid4(): 0}
    [change] = changes_after(known)

    assert (change.process_id, change.revision) == (here.pk, here.revision)
    assert (change.name, change.status) == ("order-listing", here.status)
    assert change.steps == {here.step: "done" if here.finished_at else "waiting"}
    assert change.edge == here.checkpoints.get(revision=here.revision).edge


@pytest.mark.usefixtures("long_work")
def test_of_a_workflow_no_step_is_named() -> None:
    process = finished(LongStep, "a")
    [change] = changes_after(behind(process))

    assert (change.status, change.steps) == ("completed", {})


def test_it_costs_two_statements_however_many_have_moved(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    orders = [order() for _ in range(5)]

    with django_assert_num_queries(2):
        assert len(changes_after(behind(*orders))) == 5
    with django_assert_num_queries(1):
        assert not changes_after({one.pk: one.revision for one in orders})
