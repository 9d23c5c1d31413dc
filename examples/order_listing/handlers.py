"""Handlers of the commands. All but one write in the transaction of the transition that issued them, so that an order's
listings and its process's step change in one commit.
"""

from django.utils import timezone

from examples.order_listing import exchange_client
from examples.order_listing.messages import (
    AcceptExternalOrder,
    ListedOnExternal,
    ListedOnInternal,
    ListOnExternal,
    ListOnInternal,
    NotifyCreationFailed,
    NotifyCreationSucceeded,
    OrderCreated,
    RequestExternalCreation,
)
from examples.order_listing.models import HistoryEntry
from examples.order_listing.orders import record
from examples.order_listing.processes import MARKETS
from orchestrator import Answer, CommandContext, handles, reacts_to


@handles(RequestExternalCreation, after_commit=True, attempts=5, timeout=30)
def request_external_creation(
    command: RequestExternalCreation, context: CommandContext
) -> Answer:
    """Asks the exchange over HTTP. It answers at once that it has the order, and calls back when it is created.

    The process id goes out as request id and comes back in the call; its idempotency key keeps a repeat harmless.
    """
    status = exchange_client.post_order(
        {
            "request_id": str(context.process_id),
            "order_id": command.order_id,
            "description": command.description,
        },
        idempotency_key=context.idempotency_key,
    )
    return Answer(f"HTTP {status}")


@handles(AcceptExternalOrder)
def accept_external_order(
    command: AcceptExternalOrder, context: CommandContext
) -> ListedOnExternal:
    """Takes over an order that the exchange already lists."""
    listed = {"external_id": command.external_id, "external_listed_at": timezone.now()}
    record(command, context, **listed)
    return ListedOnExternal(command.order_id)


@handles(ListOnExternal)
def list_on_external(
    command: ListOnExternal, context: CommandContext
) -> ListedOnExternal:
    """Records the listing on the exchange."""
    listed = {"external_id": command.external_id, "external_listed_at": timezone.now()}
    record(command, context, **listed)
    return ListedOnExternal(command.order_id)


@handles(ListOnInternal)
def list_on_internal(
    command: ListOnInternal, context: CommandContext
) -> ListedOnInternal:
    """Lists the order on the internal market."""
    record(command, context, internal_listed_at=timezone.now())
    return ListedOnInternal(command.order_id)


@handles(NotifyCreationSucceeded)
def notify_creation_succeeded(
    command: NotifyCreationSucceeded, context: CommandContext
) -> None:
    """Leaves the good news where the trader sees it."""
    record(command, context, notice=f"Listed: {MARKETS[command.destination].lower()}")


@handles(NotifyCreationFailed)
def notify_creation_failed(
    command: NotifyCreationFailed, context: CommandContext
) -> None:
    """Leaves the bad news, with the exchange's reason."""
    record(command, context, notice="Refused by the exchange", reason=command.reason)


@reacts_to(OrderCreated)
def record_history(event: OrderCreated, context: CommandContext) -> None:
    """One event, one action: an entry in the order's history. A process manager would be too much here."""
    HistoryEntry.objects.get_or_create(
        id=context.command_id,
        defaults={"order_id": event.order_id, "text": f"Entered: {event.description}"},
    )
