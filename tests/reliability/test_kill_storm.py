"""Workers are killed and Valkey is emptied every few moments while orders run: all complete, nothing disagrees."""

import random
import time

import pytest

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from examples.order_listing.promise import disagreements
from orchestrator.models import Incident, IssuedCommand, ProcessInstance, Status
from tests.reliability.storm import Storm
from tests.services.exchange import ExchangeProcess
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

ORDERS = size(24, full=500)
ORDERS_A_SECOND = 20
DESTINATIONS = [*Destination, Destination.BOTH]


def place_orders(dice: random.Random) -> None:
    for _ in range(ORDERS):
        place_order(dice.choice(DESTINATIONS), "50 MWh base load, Tokyo area")
        time.sleep(dice.uniform(0, 2 / ORDERS_A_SECOND))


@pytest.mark.full_size("500 orders", seconds=400)
def test_all_orders_complete_and_never_disagree_with_their_processes(
    valkey: ValkeyServer, exchange: ExchangeProcess, hands: Workers
) -> None:
    exchange.behave(shortest=0.1, longest=2, twice=0.3, early=0.1, lose=0.1, reject=0.1)
    seen, storm = list[str](), Storm(hands, 0.4, steps=8, seed=11)
    storm.every(1.5, "flushes", valkey.forget_everything, steps=8)
    storm.every(size(2, full=1) / 4, "looks", lambda: seen.extend(disagreements()))
    completed = ProcessInstance.objects.filter(status=Status.COMPLETED)
    due = IssuedCommand.objects.filter(wake_at__isnull=False)

    with storm.raging(kills=size(3, full=20)) as until:
        place_orders(random.Random(12))
        until(lambda: completed.count() == ORDERS, 200)
        until(lambda: not due.exists(), 30)

    assert storm.counts["flushes"] >= size(1, full=4)
    assert storm.counts["looks"] >= size(4, full=50)
    assert seen == []
    assert Order.objects.exclude(notice="").count() == ORDERS
    assert not Incident.objects.open().exists()
