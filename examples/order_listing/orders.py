"""Entering orders, and writing down what becomes of them."""

import secrets
from typing import Protocol

from django.db import transaction

from examples.order_listing.messages import Destination, OrderCreated
from examples.order_listing.models import Order
from examples.order_listing.processes import OrderListing
from orchestrator import CommandContext, start_process
from orchestrator.exceptions import Permanent


class OrderCommand(Protocol):
    """The fields of an order that every command about it has."""

    @property
    def order_id(self) -> str: ...
    @property
    def destination(self) -> Destination: ...
    @property
    def description(self) -> str: ...


def new_order_id() -> str:
    """An id that nobody has used, like "O-3FA85C9E01"."""
    return f"O-{secrets.token_hex(5).upper()}"


@transaction.atomic
def place_order(
    destination: Destination, description: str, order_id: str = ""
) -> Order:
    """Enters an order and starts its listing, both or neither.

    Args:
        destination: the markets to list it on.
        description: in a trader's words, like "50 MWh base load, Tokyo area".
        order_id: the caller's own id, if it has one; entering an order twice gives the first one again.

    Raises:
        ConflictingEvent: an order of that id was entered with other contents.
        KeyTaken: an order of that id is being listed that was made on the exchange.
    """
    order_id = order_id or new_order_id()
    event = OrderCreated(order_id, destination, description)
    receipt = start_process(OrderListing, event, id=order_id, source="order-entry")
    if receipt.repeated:
        return Order.objects.get(pk=order_id)
    return Order.objects.create(
        order_id=order_id,
        process_id=receipt.process_id,
        destination=destination,
        description=description,
    )


def record(command: OrderCommand, context: CommandContext, **changes: object) -> None:
    """Writes what a command changes in its order; an order entered elsewhere gets its row with the first command.

    Raises:
        Permanent: the order id belongs to another process, or the command to none.
    """
    process_id = context.process_id
    if process_id is None:
        raise Permanent("orders are listed by a process")
    if Order.objects.filter(pk=command.order_id, process_id=process_id).update(
        **changes
    ):
        return
    order, created = Order.objects.get_or_create(
        pk=command.order_id,
        defaults={
            "process_id": process_id,
            "destination": command.destination,
            "description": command.description,
            **changes,
        },
    )
    if not created:
        raise Permanent(
            f"order {order.pk} belongs to another process, {order.process_id}"
        )
