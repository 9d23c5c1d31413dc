import random

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from examples.stream import Stream

QUANTITIES = (5, 10, 20, 25, 50, 80, 100, 150)
PRODUCTS = (
    "base load",
    "peak load",
    "day-ahead base load",
    "weekend base load",
    "month-ahead peak load",
)
AREAS = (
    "Tokyo",
    "Kansai",
    "Chubu",
    "Kyushu",
    "Hokkaido",
    "Tohoku",
    "Shikoku",
    "Chugoku",
    "Hokuriku",
)
DESTINATIONS = (
    Destination.BOTH,
    Destination.BOTH,
    Destination.EXTERNAL,
    Destination.INTERNAL,
)


class Command(Stream):
    """A steady stream of orders for every destination."""

    help = "Enters orders until SIGTERM or Ctrl-C."
    thing = "order"
    pause = 1.0
    most = 20_000

    def number(self) -> int:
        return Order.objects.count()

    def enter(self, dice: random.Random) -> None:
        place_order(dice.choice(DESTINATIONS), description(dice))


def description(dice: random.Random) -> str:
    """Made up, like "50 MWh base load, Tokyo area"."""
    return f"{dice.choice(QUANTITIES)} MWh {dice.choice(PRODUCTS)}, {dice.choice(AREAS)} area"
