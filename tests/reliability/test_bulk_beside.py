"""Other work beside a large bulk operation: in turns with it and without, on the same workers, counted in each turn."""

import time
from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.engine.operations import pause_bulk, resume_bulk
from orchestrator.exceptions import StaleRevision
from orchestrator.models import BulkOperation, ProcessInstance, Status
from tests.services import emptying
from tests.services.bulk import asked, begun, settled
from tests.services.patience import wait_for
from tests.services.seeds import seeded
from tests.services.sizes import size
from tests.services.workers import Workers

ITEMS = size(80, full=20_000)
ORDERS = size(20, full=1_000)
"""So many are placed at once in each turn, which lasts until all are listed: the same work each time."""
TURNS = size(2, full=6)
LEAST = size(0, full=80) / 100
"""What is left to others. Of few short turns it is told only that they do not stand still."""


def listed() -> int:
    return ProcessInstance.objects.filter(status=Status.COMPLETED).count()


def in_a_turn(begin: Callable[[], object]) -> float:
    """Return how many orders a second were listed until all were.

    They are placed in one transaction, so that none is begun before the last is placed.

    Args:
        begin: begins what is beside them, once they are placed.
    """
    enough = listed() + ORDERS
    with transaction.atomic():
        for _ in range(ORDERS):
            place_order(Destination.INTERNAL, "1 MWh")
    began = time.monotonic()
    begin()
    wait_for(lambda: listed() >= enough, 120)
    return ORDERS / (time.monotonic() - began)


@pytest.mark.crowds
@pytest.mark.full_size("20,000 items beside 1,000 orders", seconds=800)
def test_s6_5_other_work_goes_on_beside_bulk(hands: Workers, operator: User) -> None:
    about = {"cause": seeded(ITEMS)}
    operation = begun(operator, about, ITEMS, selection="failures")
    pause_bulk(operation.pk, request=asked(operator))
    alone, beside = list[float](), list[float]()
    hands.start()
    for _ in range(TURNS):
        alone.append(in_a_turn(bool))
        resume = partial(resume_bulk, operation.pk, request=asked(operator))
        beside.append(in_a_turn(resume))
        wait_for(lambda: settled(operation) > 0, 60)
        try:
            pause_bulk(operation.pk, request=asked(operator))
        except StaleRevision:
            break  # it has come to its end
        wait_for(lambda: not BulkOperation.objects.get(pk=operation.pk).tried, 60)
    hands.stop()
    operation.refresh_from_db()

    emptying.empty(connection)  # what is left to do
    assert sum(beside) >= sum(alone) * LEAST, (alone, beside, operation.settled)
