"""The release after the first, made to be deployed beside it: each message that changes reads its older form."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

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


def in_euros(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "currency": "EUR"}


def by_phone(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "by": "phone"}


def in_one_box(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "boxes": 1}


class OrderPlaced(Event):
    order: str
    website: str = "jp"


class OrderPaid(Event, from_older=in_euros):
    order: str
    cents: int
    currency: str


class NoteAdded(Event, from_older=by_phone):
    order: str
    number: int
    by: str


class OrderBoxed(Event, aliases="OrderPacked", from_older=in_one_box):
    order: str
    boxes: int


class OrderHeld(Event):
    order: str


class Dispatch(Command, aliases="Ship"):
    order: str
    express: bool = False


Ship = Dispatch


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
            when(OrderPaid).issue(Dispatch).go_to(Step.PAID),
            when(OrderHeld).go_to(Step.HELD),
            after(timedelta(days=1)).escalate(),
        ),
        during(
            Step.PAID,
            when(NoteAdded).set(notes=noted),
            when(OrderBoxed).go_to(Step.PACKED),
        ),
        during(Step.HELD, when(OrderPaid).go_to(Step.PAID)),
    )


class Weighed(Event):
    grams: int
    unit: str = "g"


@dataclass(frozen=True)
class Parcel:
    grams: int
    unit: str = "g"


def pack(parcel: Weighed) -> Parcel:
    return Parcel(parcel.grams, parcel.unit)


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
