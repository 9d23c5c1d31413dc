"""The order listing as a process manager. It only routes: what the commands do is in `handlers.py`.

Somebody else may say too, and earlier than we ourselves, that an order is listed: those events can come early and wait
for their step. All others that a step does not list are wrong there.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from examples.order_listing.messages import (
    AcceptExternalOrder,
    Destination,
    ExternalOrderCreated,
    ExternalOrderRejected,
    ListedOnExternal,
    ListedOnInternal,
    ListOnExternal,
    ListOnInternal,
    NotifyCreationFailed,
    NotifyCreationSucceeded,
    OrderCreated,
    RequestExternalCreation,
)
from orchestrator.definition import ProcessManager, after, during, park, reject, when

MARKETS = {
    Destination.INTERNAL: "Internal market",
    Destination.EXTERNAL: "Exchange",
    Destination.BOTH: "Both markets",
}


class OrderListing(ProcessManager):
    """Creates an order on the markets it is destined for and lists it there."""

    class Step(StrEnum):
        NOT_STARTED = "NotStarted"
        AWAITING_EXTERNAL_CREATION = "AwaitingExternalCreation"
        AWAITING_EXTERNAL_LISTING = "AwaitingExternalListing"
        AWAITING_INTERNAL_LISTING = "AwaitingInternalListing"
        COMPLETED = "Completed"

    @dataclass(frozen=True)
    class Data:
        order_id: str
        destination: Destination
        description: str = ""
        external_id: str = ""
        reason: str = ""

    version = 2
    correlation = "order_id"
    otherwise = reject

    @staticmethod
    def summary(data: Data) -> str:
        """Like "Both markets, 50 MWh base load, Tokyo area"."""
        return ", ".join(filter(None, [MARKETS[data.destination], data.description]))

    transitions = (
        during(
            Step.NOT_STARTED,
            when(OrderCreated, destination=[Destination.BOTH, Destination.EXTERNAL])
            .issue(RequestExternalCreation)
            .go_to(Step.AWAITING_EXTERNAL_CREATION),
            when(OrderCreated, destination=Destination.INTERNAL)
            .issue(ListOnInternal)
            .go_to(Step.AWAITING_INTERNAL_LISTING),
            when(ExternalOrderCreated)
            .set(destination=Destination.EXTERNAL)
            .issue(AcceptExternalOrder)
            .go_to(Step.AWAITING_EXTERNAL_LISTING),
        ),
        during(
            Step.AWAITING_EXTERNAL_CREATION,
            when(ExternalOrderCreated)
            .issue(ListOnExternal)
            .go_to(Step.AWAITING_EXTERNAL_LISTING),
            when(ExternalOrderRejected)
            .issue(NotifyCreationFailed)
            .go_to(Step.COMPLETED),
            park(ListedOnExternal),
            park(ListedOnInternal, destination=Destination.BOTH),
            after(timedelta(minutes=10)).escalate(),
        ),
        during(
            Step.AWAITING_EXTERNAL_LISTING,
            when(ListedOnExternal, destination=Destination.BOTH)
            .issue(ListOnInternal)
            .go_to(Step.AWAITING_INTERNAL_LISTING),
            when(ListedOnExternal, destination=Destination.EXTERNAL)
            .issue(NotifyCreationSucceeded)
            .go_to(Step.COMPLETED),
            park(ListedOnInternal, destination=Destination.BOTH),
        ),
        during(
            Step.AWAITING_INTERNAL_LISTING,
            when(ListedOnInternal).issue(NotifyCreationSucceeded).go_to(Step.COMPLETED),
        ),
    )


class LenientOrderListing(OrderListing):
    """The same as it was when it parked whatever it did not list: for the orders that began then."""

    name = OrderListing.name
    version = 1
    otherwise = park
    transitions = OrderListing.transitions
