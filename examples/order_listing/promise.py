"""The promise of the example: an order's listings and its process's step never disagree, not even for a moment."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.apps import apps
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.processes import OrderListing

Step = OrderListing.Step
INTERNAL, EXTERNAL, BOTH = Destination.INTERNAL, Destination.EXTERNAL, Destination.BOTH


@dataclass(frozen=True)
class ListingState:
    """The state of an order: on which markets it is listed and whether the exchange refused it."""

    external: bool = False
    internal: bool = False
    refused: bool = False


NOWHERE = ListingState()
REFUSED = ListingState(refused=True)
ON_EXTERNAL = ListingState(external=True)
ON_INTERNAL = ListingState(internal=True)
ON_BOTH = ListingState(external=True, internal=True)

ALLOWED: dict[tuple[str, str], set[ListingState]] = {
    (Step.NOT_STARTED, INTERNAL): {NOWHERE},
    (Step.NOT_STARTED, EXTERNAL): {NOWHERE},
    (Step.NOT_STARTED, BOTH): {NOWHERE},
    (Step.AWAITING_EXTERNAL_CREATION, EXTERNAL): {NOWHERE},
    (Step.AWAITING_EXTERNAL_CREATION, BOTH): {NOWHERE},
    (Step.AWAITING_EXTERNAL_LISTING, EXTERNAL): {ON_EXTERNAL},
    (Step.AWAITING_EXTERNAL_LISTING, BOTH): {ON_EXTERNAL},
    (Step.AWAITING_INTERNAL_LISTING, INTERNAL): {ON_INTERNAL},
    (Step.AWAITING_INTERNAL_LISTING, BOTH): {ON_BOTH},
    (Step.COMPLETED, INTERNAL): {ON_INTERNAL},
    (Step.COMPLETED, EXTERNAL): {ON_EXTERNAL, REFUSED},
    (Step.COMPLETED, BOTH): {ON_BOTH, REFUSED},
}
"""Step and destination -> how the order may stand then."""


def disagreements() -> list[str]:
    """Every order that does not stand as its process's step says, in a sentence each; none, if the promise is kept.

    One statement reads all orders and processes, so that both are of the same moment on every database.
    """
    return [sentence for row in _rows() if (sentence := _disagreement(*row))]


def _rows() -> Iterator[tuple[str, str, str, ListingState | None]]:
    """Order id, step, destination and state of every order and of every process that has no order."""
    process = _processes().filter(pk=OuterRef("process_id"))
    orders = Order.objects.annotate(
        # An order whose process has not been taken up yet has not started.
        step=Coalesce(
            Subquery(process.values("step")[:1]), Value(str(Step.NOT_STARTED))
        ),
        external=Q(external_listed_at__isnull=False),
        internal=Q(internal_listed_at__isnull=False),
        refused=~Q(reason=""),
        known=Value(True),
    )
    orderless = (
        _processes()
        .filter(~Exists(Order.objects.filter(process_id=OuterRef("pk"))))
        .annotate(
            **{
                flag: Value(False)
                for flag in ("external", "internal", "refused", "known")
            }
        )
    )
    flags = ("external", "internal", "refused", "known")
    both = orders.values_list("pk", "step", "destination", *flags).union(
        orderless.values_list("correlation_key", "step", Value(""), *flags), all=True
    )
    for order_id, step, destination, external, internal, refused, known in both:
        state = (
            ListingState(bool(external), bool(internal), bool(refused))
            if known
            else None
        )
        yield order_id, step, destination, state


def _processes() -> QuerySet[Model]:
    model: type[Model] = apps.get_model("orchestrator", "ProcessInstance")
    return model._default_manager.filter(name=OrderListing.name)


def _disagreement(
    order_id: str, step: str, destination: str, state: ListingState | None
) -> str:
    if state is None:
        # Before the exchange has answered, an order entered elsewhere has no row yet.
        waiting = step in (Step.NOT_STARTED, Step.AWAITING_EXTERNAL_CREATION)
        return "" if waiting else f"{order_id} in {step} has no order"
    if state in ALLOWED.get((step, destination), set()):
        return ""
    return f"{order_id} for {destination} in {step} stands as {state}"
