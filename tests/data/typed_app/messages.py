"""What happens to orders, and what is to be done with them."""

from enum import StrEnum

from orchestrator.definition import Command, Event


class Answer(StrEnum):
    """What may be said of an order."""

    YES = "yes"
    NO = "no"


class OrderPlaced(Event):
    order_id: str
    amount: int


class OrderPaid(Event):
    order_id: str


class RequestPayment(Command):
    order_id: str
    amount: int


class ShipOrder(Command):
    order_id: str
