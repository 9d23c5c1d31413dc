"""Without Valkey there is no bell and no live page, but every order completes."""

import pytest

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from examples.order_listing.promise import disagreements
from orchestrator.models import ProcessInstance, Status
from tests.services.exchange import ExchangeProcess
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

ORDERS = size(6, full=30)
DESTINATIONS = [Destination.BOTH, Destination.EXTERNAL, Destination.INTERNAL]


@pytest.mark.full_size("30 orders", seconds=90)
def test_orders_complete_while_valkey_is_away_for_the_whole_run(
    valkey: ValkeyServer, exchange: ExchangeProcess, hands: Workers
) -> None:
    valkey.stop()
    hands.start()

    for number in range(ORDERS):
        place_order(DESTINATIONS[number % 3], "50 MWh base load, Tokyo area")
    completed = ProcessInstance.objects.filter(status=Status.COMPLETED)
    wait_for(lambda: completed.count() == ORDERS, 60, completed.count)

    assert not valkey.running
    assert hands.stop() == 0
    assert disagreements() == []
