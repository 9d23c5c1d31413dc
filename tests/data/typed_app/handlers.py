"""What is done, and who starts it."""

from uuid import UUID

from orchestrator import (
    Answer,
    CommandContext,
    Receipt,
    handles,
    reacts_to,
    send_event,
    start_process,
)
from orchestrator.definition import Event

from .messages import OrderPaid, OrderPlaced, RequestPayment, ShipOrder
from .processes import Application, Order, Review


@handles(RequestPayment, after_commit=True, attempts=3)
def request_payment(command: RequestPayment, context: CommandContext) -> Answer:
    return Answer(f"asked for {command.amount}", OrderPaid(command.order_id))


@handles(ShipOrder)
def ship(command: ShipOrder) -> list[Event]:
    return []


@reacts_to(OrderPaid)
def thank(event: OrderPaid) -> None:
    """Says thank you."""


def place(order_id: str, amount: int) -> UUID:
    receipt = start_process(Order, OrderPlaced(order_id, amount))
    return receipt.process_id


def review(name: str) -> UUID:
    return start_process(Review, Application(name, 3), id=name).process_id


def paid(order_id: str) -> Receipt:
    return send_event(OrderPaid(order_id), id=f"paid {order_id}", source="bank")


def ship_again(order_id: str) -> list[Event]:
    return ship(ShipOrder(order_id))
