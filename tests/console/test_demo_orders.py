"""The stream of orders for demonstrations, and the exchange as a management command."""

import re
import time
from urllib.request import urlopen

import pytest

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from orchestrator.models import InboxEvent
from tests.services.exchange import ExchangeProcess
from tests.services.patience import bar, wait_for
from tests.services.program import management_command, run_command

pytestmark = pytest.mark.django_db(transaction=True)


def test_orders_for_every_destination_stream_in_until_the_end_is_asked_for() -> None:
    stream = management_command("demo_orders", "--pause", "0.02", "--seed", "1")
    stream.start()
    wait_for(lambda: Order.objects.count() >= 20, 20)
    began = time.monotonic()

    assert stream.stop() == 0
    assert time.monotonic() - began < bar(3)
    assert set(Order.objects.values_list("destination", flat=True)) == set(Destination)
    assert InboxEvent.objects.count() == Order.objects.count()
    for order in Order.objects.all():
        assert re.fullmatch(r"\d+ MWh .+, \w+ area", order.description)


def test_the_stream_pauses_while_there_are_orders_enough() -> None:
    stream = management_command("demo_orders", "--pause", "0.005", "--most", "5")
    stream.start()
    wait_for(lambda: Order.objects.count() == 5, 20)

    Order.objects.first().delete()  # type: ignore[union-attr]  # there are five
    wait_for(lambda: InboxEvent.objects.count() == 6, 5)

    assert stream.stop() == 0
    assert Order.objects.count() == 5


def test_a_pause_of_nothing_is_refused_in_one_line() -> None:
    result = run_command("demo_orders", "--pause", "0")

    assert result.returncode != 0
    assert result.stderr.strip() == "CommandError: --pause must be more than 0"


def test_the_exchange_is_also_a_management_command() -> None:
    exchange = ExchangeProcess("http://127.0.0.1:9/", managed=True)
    exchange.start()

    with urlopen(f"{exchange.url}/health", timeout=60) as answer:  # noqa: S310  a test's own address
        assert answer.status == 200

    assert exchange.stop() == 0
