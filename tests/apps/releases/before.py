"""The first release."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    after,
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


class OrderPacked(Event):
    order: str


class NoteAdded(Event):
    order: str
    number: int


class OrderHeld(Event):
    order: str


class Ship(Command):
    order: str


def noted(data: "Order.Data", event: NoteAdded) -> tuple[int, ...]:
    return (*data.notes, event.number)


class Order(ProcessManager):
    """An order, from its placing to its packing."""

    class Step(StrEnum):
        NEW = "New"
        PLACED = "Placed"
        PAID = "Paid"
        HELD = "Held"
        PACKED = "Packed"

    @dataclass(frozen=True)
    class Data:
        order: str
        notes: tuple[int, ...] = ()

    correlation = "order"
    transitions = (
        during(Step.NEW, when(OrderPlaced).go_to(Step.PLACED)),
        during(
            Step.PLACED,
            when(OrderPaid).issue(Ship).go_to(Step.PAID),
            when(OrderHeld).go_to(Step.HELD),
            after(timedelta(days=1)).escalate(),
        ),
        during(
            Step.PAID,
            when(NoteAdded).set(notes=noted),
            when(OrderPacked).go_to(Step.PACKED),
        ),
        during(Step.HELD, when(OrderPaid).go_to(Step.PAID)),
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
            wait(OrderPacked, "at_table", gives="packed"),
            step(label),
        ),
    )
