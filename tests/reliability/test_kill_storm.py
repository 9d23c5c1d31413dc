"""Workers are killed and Valkey is emptied every few moments while orders run: all complete, nothing disagrees."""

import random
import time
from collections import Counter

import pytest

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from examples.order_listing.promise import disagreements
from orchestrator.engine.invariants import violations
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
)
from tests.reliability.storm import Storm, kill_one
from tests.services.exchange import ExchangeProcess
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]

ORDERS = size(120, full=500)
ORDERS_A_SECOND = 20
DESTINATIONS = [
    Destination.BOTH,
    Destination.EXTERNAL,
    Destination.BOTH,
    Destination.INTERNAL,
]


def place_orders(dice: random.Random) -> None:
    for _ in range(ORDERS):
        place_order(dice.choice(DESTINATIONS), "50 MWh base load, Tokyo area")
        time.sleep(dice.uniform(0, 2 / ORDERS_A_SECOND))


def unfinished(workers: Workers) -> str:
    statuses = Counter(ProcessInstance.objects.values_list("step", "status"))
    verdicts = Counter(InboxEvent.objects.values_list("verdict", flat=True))
    incidents = Counter(Incident.objects.open().values_list("message", flat=True))
    said = workers.supervisor.log.read_text()[-1500:]
    found = f"{dict(statuses)} {dict(verdicts)} {dict(incidents)}"
    return f"{found}; workers alive: {workers.supervisor.alive}; they said: {said}"


@pytest.mark.full_size("500 orders", seconds=400)
def test_all_orders_complete_and_never_disagree_with_their_processes(
    valkey: ValkeyServer, exchange: ExchangeProcess, workers: Workers
) -> None:
    exchange.behave(shortest=0.1, longest=2, twice=0.3, early=0.1, lose=0.1, reject=0.1)
    dice, seen = random.Random(11), list[str]()
    storm = Storm()
    storm.every(0.4, "kills", lambda: kill_one(workers, dice), steps=8)
    storm.every(1.5, "flushes", valkey.forget_everything)
    storm.every(0.25, "looks", lambda: seen.extend(disagreements()))
    completed = ProcessInstance.objects.filter(status=Status.COMPLETED)
    due = IssuedCommand.objects.filter(wake_at__isnull=False)

    with storm.raging():
        place_orders(random.Random(12))
        wait_for(lambda: completed.count() == ORDERS, 200, lambda: unfinished(workers))
        wait_for(lambda: not due.exists(), 30, lambda: unfinished(workers))

    assert storm.failures == []
    assert storm.counts["kills"] >= size(8, full=20)
    assert storm.counts["flushes"] >= size(2, full=4)
    assert storm.counts["looks"] >= size(10, full=50)
    assert seen == []
    assert Order.objects.exclude(notice="").count() == ORDERS
    assert not Incident.objects.open().exists()
    assert violations() == []
