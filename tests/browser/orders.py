"""Orders for the pages to show."""

from functools import partial

from examples.order_listing.messages import (
    Destination,
    ExternalOrderCreated,
    RequestExternalCreation,
)
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from orchestrator import Answer, CommandContext, send_event
from orchestrator.models import ProcessInstance
from orchestrator.testing import replaced, run
from tests.browser.samples import HARMFUL
from tests.services.bulk import a_moment
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


def went_on(order: Order) -> None:
    """The exchange says that it has the order, which goes to its end."""
    created_outside(order)
    run()


def started(order: Order) -> None:
    """Waits until a worker has started the order's process."""
    rows = ProcessInstance.objects.filter(pk=order.process_id)
    wait_for(rows.exists, 10)


def taken(command: RequestExternalCreation, context: CommandContext) -> Answer:
    """The exchange has the order, and says nothing more."""
    return Answer("HTTP 202")


exchange_back = partial(replaced, "RequestExternalCreation", taken)
"""Has the exchange take orders, for as long as a block lasts."""


def placed(
    destination: Destination, key: str = "", description: str = "50 MWh"
) -> Order:
    """An order on which all is done that can be without an exchange: what it would have to be told has failed."""
    order = place_order(destination, description, key)
    run()
    return order


def waiting_order(destination: Destination = Destination.EXTERNAL) -> Order:
    """An order that waits for the exchange."""
    with exchange_back():
        return placed(destination, "A-1")


def failed(number: int = 1) -> list[Order]:
    """Orders that have failed for one cause; what they say of themselves would do harm as markup."""
    found = [
        place_order(Destination.BOTH, f"{one} MWh {HARMFUL[one % len(HARMFUL)]}")
        for one in range(number)
    ]
    run()
    a_moment()
    return found
