"""Orders for the pages to show."""

from examples.order_listing.messages import ExternalOrderCreated
from examples.order_listing.models import Order
from orchestrator import send_event
from orchestrator.models import ProcessInstance
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
