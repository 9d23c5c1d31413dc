"""Definitions that know one type of event, each by the key of its own processes."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import Event, ProcessManager, Workflow, during, wait, when


class OrderPaid(Event):
    order: str


class OrderPacked(Event):
    order: str


class OrderShipped(Event):
    order: str


class Stage(StrEnum):
    NEW = "New"
    OPEN = "Open"
    DONE = "Done"


@dataclass(frozen=True)
class Order:
    order: str


class Accounts(ProcessManager):
    """Begins with a payment, and ends when the order was shipped."""

    Step, Data, correlation = Stage, Order, "order"
    transitions = (
        during(Stage.NEW, when(OrderPaid).go_to(Stage.OPEN)),
        during(Stage.OPEN, when(OrderShipped).go_to(Stage.DONE)),
    )


class Store(ProcessManager):
    """Begins with a parcel, and ends when it was shipped."""

    Step, Data, correlation = Stage, Order, "order"
    transitions = (
        during(Stage.NEW, when(OrderPacked).go_to(Stage.OPEN)),
        during(Stage.OPEN, when(OrderShipped).go_to(Stage.DONE)),
    )


class Feedback(Workflow):
    """Waits for the order, if anybody asked for that."""

    Input, correlation = Order, "order"
    missing = "ignore"
    flow = (wait(OrderShipped),)


class Bystander(ProcessManager):
    """Has nothing to do with orders that it has not packed."""

    Step, Data, correlation = Stage, Order, "order"
    missing = "ignore"
    transitions = Store.transitions
