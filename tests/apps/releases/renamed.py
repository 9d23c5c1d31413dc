"""A later release: messages have other names and forms, and read those of the first release."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    during,
    step,
    then,
    wait,
    when,
)


def in_euros(body: dict[str, Any]) -> dict[str, Any]:
    """Convert an amount in cents."""
    return {"order": body["order"], "euros": body["cents"] / 100}


class OrderOpened(Event, aliases="OrderPlaced"):
    order: str


class PaymentReceived(
    Event, aliases=("OrderPaid", "OrderSettled"), from_older=in_euros
):
    order: str
    euros: float


class OrderBoxed(Event, aliases="OrderPacked"):
    order: str


class Dispatch(Command, aliases="Ship"):
    order: str


Ship = Dispatch


class Order(ProcessManager):
    """An order, from its placing to its packing."""

    class Step(StrEnum):
        NEW = "New"
        PLACED = "Placed"
        PAID = "Paid"
        PACKED = "Packed"

    @dataclass(frozen=True)
    class Data:
        order: str
        notes: tuple[int, ...] = ()

    correlation = "order"
    transitions = (
        during(Step.NEW, when(OrderOpened).go_to(Step.PLACED)),
        during(Step.PLACED, when(PaymentReceived).issue(Dispatch).go_to(Step.PAID)),
        during(Step.PAID, when(OrderBoxed).go_to(Step.PACKED)),
    )


class Weighed(Event):
    grams: int


@dataclass(frozen=True)
class Parcel:
    grams: int


def pack(parcel: Weighed) -> Parcel:
    return Parcel(parcel.grams)


def label(pack: Parcel) -> int:
    return pack.grams


class Packing(Workflow):
    """A parcel is weighed, packed, and has its label after an event."""

    @dataclass(frozen=True)
    class Input:
        order: str

    correlation = "order"
    flow = (
        then(
            wait(Weighed, "on_scales", gives="parcel"),
            pack,
            wait(OrderBoxed, "at_table", gives="packed"),
            step(label),
        ),
    )
