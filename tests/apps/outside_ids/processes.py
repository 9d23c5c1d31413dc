"""A delivery that gets, changes and loses numbers, one that declares none, and a workflow that is started with one."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from orchestrator.definition import Event, ProcessManager, Workflow, during, step, when


class Ordered(Event):
    order: str
    parcels: list[str]
    customer: int
    tracking: str | None = None


class Relabelled(Event):
    order: str
    parcels: list[str]
    tracking: str | None


class Noted(Event):
    order: str
    note: str


class Arrived(Event):
    order: str


class Step(StrEnum):
    NEW = "New"
    UNDERWAY = "Underway"
    THERE = "There"


@dataclass(frozen=True)
class Order:
    order: str
    parcels: list[str]
    customer: int
    tracking: str | None = None
    note: str = ""


ROWS = (
    during(Step.NEW, when(Ordered).go_to(Step.UNDERWAY)),
    during(
        Step.UNDERWAY, when(Relabelled), when(Noted), when(Arrived).go_to(Step.THERE)
    ),
)


class Delivery(ProcessManager):
    """Is found by the numbers of its parcels, its customer's and its tracking code."""

    Step, Data, correlation = Step, Order, "order"

    outside_ids = ("parcels", "customer", "tracking")
    transitions = ROWS


class PlainDelivery(ProcessManager):
    """The same without outside ids."""

    Step, Data, correlation = Step, Order, "order"

    transitions = ROWS


@dataclass(frozen=True)
class Claim:
    claim: UUID
    policy: str


def assess(claim: UUID) -> str:
    return "paid"


class Assessment(Workflow):
    """Is found by the number of the policy."""

    Input = Claim
    outside_ids = ("policy", "claim")
    flow = (step(assess),)
