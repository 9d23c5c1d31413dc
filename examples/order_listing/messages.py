"""Messages about orders: events are facts, commands are requests.

Events carry no control data. The process id with which an event is sent says to which process it belongs.
"""

from enum import StrEnum

from orchestrator.definition import Command, Event


class Destination(StrEnum):
    """The markets an order is to be listed on."""

    INTERNAL = "internal"
    EXTERNAL = "external"
    BOTH = "both"


class OrderCreated(Event):
    """An order was entered in our own system."""

    order_id: str
    destination: Destination
    description: str = ""


class ExternalOrderCreated(Event):
    """The exchange has an order: one we asked it for, or one that was born there.

    `order_id` is our own id if we asked for it, otherwise the exchange's.
    """

    order_id: str
    external_id: str
    description: str = ""


class ExternalOrderRejected(Event):
    """The exchange refused to create an order."""

    reason: str


class ListedOnExternal(Event):
    """The order's listing on the exchange is recorded."""

    order_id: str


class ListedOnInternal(Event):
    """The order is listed on the internal market."""

    order_id: str


class RequestExternalCreation(Command):
    """Ask the exchange to create the order."""

    order_id: str
    description: str


class AcceptExternalOrder(Command):
    """Take over an order that was born on the exchange."""

    order_id: str
    destination: Destination
    description: str
    external_id: str


class ListOnExternal(Command):
    """Record that the exchange lists the order."""

    order_id: str
    destination: Destination
    description: str
    external_id: str


class ListOnInternal(Command):
    """List the order on the internal market."""

    order_id: str
    destination: Destination
    description: str


class NotifyCreationSucceeded(Command):
    """Tell the trader that the order stands where it was destined for."""

    order_id: str
    destination: Destination
    description: str


class NotifyCreationFailed(Command):
    """Tell the trader that the exchange refused the order."""

    order_id: str
    destination: Destination
    description: str
    reason: str
