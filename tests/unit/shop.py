"""A small shop, for definitions that are right but for one mistake."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from orchestrator.definition import Command, Event, ProcessManager, during, when
from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.exceptions import InvalidDefinition


class Payment(StrEnum):
    CARD = "card"
    CASH = "cash"
    INVOICE = "invoice"


class Ordered(Event):
    order_id: str
    payment: Payment


class Paid(Event):
    amount: int
    final: bool = True


class Sent(Event):
    parcel: str


class Returned(Event):
    pass


class Pack(Command):
    order_id: str


class Refund(Command):
    amount: int


class Step(StrEnum):
    NEW = "New"
    UNPAID = "Unpaid"
    PACKING = "Packing"
    DONE = "Done"


@dataclass(frozen=True)
class Data:
    order_id: str
    payment: Payment
    parcel: str = ""
    gift: bool = False


START = when(Ordered).go_to(Step.UNPAID)
PAY = when(Paid).issue(Pack).go_to(Step.PACKING)
SEND = when(Sent).go_to(Step.DONE)


def define(
    new: list[Any] | None = None,
    unpaid: list[Any] | None = None,
    packing: list[Any] | None = None,
    **attributes: Any,
) -> type[ProcessManager]:
    """Run the class statement of a shop whose steps have these rows; what is not given is right."""
    rows = {
        Step.NEW: [START] if new is None else new,
        Step.UNPAID: [PAY] if unpaid is None else unpaid,
        Step.PACKING: [SEND] if packing is None else packing,
    }
    body = {
        "__module__": __name__,
        "Step": Step,
        "Data": Data,
        "transitions": [during(step, *group) for step, group in rows.items() if group],
        **attributes,
    }
    return type("Shop", (ProcessManager,), body)


def refusal(*args: Any, **attributes: Any) -> InvalidDefinition:
    """Return how the class statement was refused."""
    with pytest.raises(InvalidDefinition) as refused:
        define(*args, **attributes)
    assert refused.value.definition == "Shop"
    return refused.value


def said_of(row: TransitionRow, reason: str) -> str:
    return f"Shop, row {str(row)!r}: {reason}"
