"""Migrations whose workers are killed again and again; and workers that go on with the new version afterwards."""

from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count

from examples.order_listing.messages import Destination, ExternalOrderRejected
from examples.order_listing.orders import place_order
from orchestrator import send_event
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import Pace
from orchestrator.models import (
    BulkOperation,
    BulkStatus,
    OperatorAction,
    ProcessInstance,
    Status,
)
from tests.apps.versions.desk import only
from tests.reliability.storm import Storm
from tests.services.bulk import begun, settled, verdicts, worked_on
from tests.services.patience import wait_for
from tests.services.seeds import seeded
from tests.services.sizes import size
from tests.services.workers import Workers

pytestmark = pytest.mark.timeout(5_000)

ITEMS = size(60, full=5_000 if connection.vendor == "postgresql" else 1_000)
"""Each is migrated by itself, in some thirty queries; on one file, where one writes at a time, more slowly."""
PACE = Pace(samples=(), batch=size(10, full=200), stop_above=None)
ABOUT = {"definition": "order-listing", "status": "live"}


@pytest.mark.full_size("5,000 items", seconds=1_200)
def test_s11_3_killed_workers_migrate_all_once(hands: Workers, operator: User) -> None:
    seeded(ITEMS)
    about, to = {**ABOUT, "version": "2"}, [1, {}]
    operation = begun(operator, about, ITEMS, action="migrate", pace=PACE, given=to)
    done = partial(settled, operation)
    completed = BulkOperation.objects.filter(status=BulkStatus.COMPLETED)

    storm = Storm(hands, 0.3, seed=11, steps=ITEMS // 20, made=done)
    with storm.raging() as until:
        until(completed.exists, max(ITEMS / 5, 120))

    assert verdicts(operation) == {"done": ITEMS}
    moved = ProcessInstance.objects.filter(definition__version=1)
    assert moved.count() == ITEMS
    rows = OperatorAction.objects.filter(action="migrate", bulk=operation)
    assert rows.aggregate(each=Count("instance", distinct=True)) == {"each": ITEMS}
    assert rows.count() == ITEMS


def test_s11_3_a_worker_runs_the_new_version(hands: Workers, operator: User) -> None:
    with only("order-listing", 1):
        order = place_order(Destination.BOTH, "50 MWh")
        drain()
    process = ProcessInstance.objects.filter(pk=order.process_id)
    assert process.get().definition.version == 1
    about, to = {**ABOUT, "version": "1"}, [2, {}]
    worked_on(begun(operator, about, 1, action="migrate", given=to))
    assert process.get().definition.version == 2

    hands.start()
    rejected, its = ExternalOrderRejected("no"), order.process_id
    send_event(rejected, id=str(uuid4()), source="exchange", process_id=its)
    wait_for(lambda: process.get().status == Status.COMPLETED, 20)
