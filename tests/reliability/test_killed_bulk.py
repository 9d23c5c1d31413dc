"""A large bulk operation whose workers are killed again and again: each item has one verdict and one audit row."""

import re
from functools import partial
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count
from django.test import Client

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.engine.operations import Pace
from orchestrator.models import BulkStatus, OperatorAction, ProcessInstance, Status
from tests.reliability.storm import Storm
from tests.services import emptying
from tests.services.bulk import begun, settled, verdicts
from tests.services.patience import wait_for
from tests.services.seeds import seeded
from tests.services.sizes import size
from tests.services.workers import Workers

pytestmark = pytest.mark.timeout(5_000)

POSTGRESQL = connection.vendor == "postgresql"

ITEMS = size(120, full=10_000, soak=100_000) if POSTGRESQL else size(120, full=2_000)
"""On one file, where one writes at a time, so many would take hours."""
ORDERS = size(10, full=30)
"""What others want meanwhile."""
KILLS = size(2, full=4)
LOOKS = 4
PACE = Pace(samples=(), batch=size(20, full=1_000), stop_above=None)


@pytest.mark.full_size(f"{ITEMS:,} items", seconds=4_000)
def test_s6_5_killed_workers_lose_nothing_and_repeat_nothing(
    hands: Workers, operator: User, client: Client
) -> None:
    about = {"cause": seeded(ITEMS)}
    operation = begun(operator, about, ITEMS, selection="failures", pace=PACE)
    done = partial(settled, operation)
    storm = Storm(hands, 0.3, seed=13, steps=ITEMS // 20, made=done)
    placed, told = list[UUID](), [0]
    client.force_login(operator)

    def look_at_its_page() -> None:
        page = client.get(f"/operations/{operation.pk}/").content.decode()
        [number] = re.findall(r"([\d,]+) of [\d,]+ have their verdict", page)
        told.append(int(number.replace(",", "")))

    def ended() -> bool:
        if len(placed) < ORDERS:
            placed.append(place_order(Destination.INTERNAL, "1 MWh").process_id)
        operation.refresh_from_db()
        if operation.settled >= told[-1] + ITEMS // 20:
            look_at_its_page()
        return operation.status == BulkStatus.COMPLETED and len(placed) == ORDERS

    with storm.raging(kills=KILLS) as until:
        until(ended, ITEMS / 20)
    others = ProcessInstance.objects.filter(pk__in=placed, status=Status.COMPLETED)
    wait_for(lambda: others.count() == ORDERS, 20)

    assert told == sorted(told)
    assert len(told) > LOOKS  # its page has told how far it was
    assert verdicts(operation) == {"failed": ITEMS}
    rows = OperatorAction.objects.filter(action="retry", bulk=operation)
    assert rows.count() == ITEMS
    assert rows.aggregate(each=Count("instance", distinct=True)) == {"each": ITEMS}
    assert not rows.exclude(result="done").exists()
    if size(0, full=1):  # of so many no statement asks for the invariants in its time
        emptying.empty(connection)
