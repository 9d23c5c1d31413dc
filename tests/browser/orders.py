"""Orders for the pages to show."""

from examples.order_listing.messages import (
    Destination,
    ExternalOrderCreated,
    RequestExternalCreation,
)
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from orchestrator import Answer, CommandContext, send_event
from orchestrator.engine.drain import drain
from orchestrator.models import ProcessInstance
from orchestrator.testing import replaced
from tests.services.patience import wait_for

WHAT = "50 MWh base load, Tokyo area"


def created_outside(order: Order) -> None:
    """The exchange says that it has the order."""
    send_event(
        ExternalOrderCreated(order.order_id, f"X-{order.order_id}", order.description),
        id=f"created {order.order_id}",
        source="exchange",
        process_id=order.process_id,
    )


def started(order: Order) -> None:
    """Waits until a worker has started the order's process."""
    rows = ProcessInstance.objects.filter(pk=order.process_id)
    wait_for(rows.exists, 10)


def taken(command: RequestExternalCreation, context: CommandContext) -> Answer:
    """The exchange has the order, and says nothing more."""
    return Answer("HTTP 202")


def waiting_order() -> Order:
    """An order that waits for the exchange."""
    order = place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    with replaced("RequestExternalCreation", taken):
        drain()
    return order
