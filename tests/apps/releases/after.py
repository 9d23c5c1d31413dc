"""The second release: fields more and less, another type, a step, a deadline and an event's name that are gone."""

from dataclasses import dataclass
from enum import StrEnum

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


class OrderPlaced(Event):
    order: str


class OrderPaid(Event):
    order: str
    cents: int
    currency: str = "EUR"


class OrderPacked(Event):
    order: str
    boxes: int


class Ship(Command):
    order: str
    cents: int
    express: bool = False


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
        boxes: int = 0

    correlation = "order"
    transitions = (
        during(Step.NEW, when(OrderPlaced).go_to(Step.PLACED)),
        during(Step.PLACED, when(OrderPaid).issue(Ship).go_to(Step.PAID)),
        during(Step.PAID, when(OrderPacked).go_to(Step.PACKED)),
    )


class Weighed(Event):
    grams: int


@dataclass(frozen=True)
class Parcel:
    grams: int
    unit: str


def pack(parcel: Weighed) -> Parcel:
    return Parcel(parcel.grams, "g")


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
            wait(OrderPacked, "at_table", gives="packed"),
            step(label),
        ),
    )
