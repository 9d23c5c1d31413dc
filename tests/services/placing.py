"""Orders that have gone as far as they go by themselves, in the test's own process."""

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator.models import ProcessInstance
from orchestrator.testing import run


def placed(
    destination: Destination = Destination.BOTH,
    description: str = "50 MWh",
    key: str = "",
) -> ProcessInstance:
    """Place an order and run what is due; return its process. One for both markets fails: there is no exchange."""
    order = place_order(destination, description, key)
    run()
    return ProcessInstance.objects.get(pk=order.process_id)
