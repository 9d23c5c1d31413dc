"""Parcels whose values JSON would change, and conditions that change what they look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from orchestrator.definition import (
    Event,
    ProcessManager,
    StepContext,
    Workflow,
    case,
    during,
    each,
    fork,
    route,
    then,
    wait,
    when,
)
from orchestrator.definition.workflow.rows import FlowRow


@dataclass(frozen=True)
class Parcel:
    weights: list[int]


@dataclass(frozen=True)
class Marked(Parcel):
    mark: str = ""


class Weighed(Event):
    weights: list[int]


def adds_one(parcel: Parcel | Weighed) -> bool:
    parcel.weights.append(0)
    return False


def adds_two(parcel: Parcel | Weighed) -> bool:
    parcel.weights.extend([0, 0])
    return True


def has_two(parcel: Parcel | Weighed) -> bool:
    return len(parcel.weights) == 2


def weigh() -> Parcel:
    return Parcel([4, 7])


def stamp() -> str:
    return "stamped"


def bind() -> str:
    return "bound"


def lose() -> str:
    return "lost"


def lift(item: int) -> int:
    return item


def load(lift: list[int]) -> list[int]:
    return lift


class RoutedParcel(Workflow):
    flow = (
        route(weigh, case(adds_one, to=stamp), case(has_two, to=bind), otherwise=lose),
    )


class LiftedParcel(Workflow):
    flow = (
        fork(weigh, into=[case(adds_two, to=stamp)]),
        each(weigh, over="weights", do=lift, into=load),
    )


class AwaitedParcel(Workflow):
    flow = (then(wait(Weighed, "scales", adds_two), stamp),)


def keep_pair(context: StepContext) -> str:
    context.save({"sizes": (4, 7)})
    return "kept"


def mark() -> Parcel:
    return Marked([4], "fragile")


def due() -> str | date:
    return date(2026, 3, 1)


class KeptParcel(Workflow):
    flow = (then(keep_pair, stamp),)


class MarkedParcel(Workflow):
    flow = (then(mark, stamp),)


class DueParcel(Workflow):
    flow = (then(due, stamp),)


class PlannedParcel(Workflow):
    """Its graph is made from the input."""

    Input = Parcel

    @staticmethod
    def flow(input: Parcel) -> list[FlowRow]:
        return [then(due, stamp)]


class GivenParcel(Workflow):
    Input = Parcel
    flow = (stamp,)


def both_grow(data: Parcel | None, event: Event | None) -> bool:
    for one in (data, event):
        if isinstance(one, Weighed | Depot.Data):
            one.weights.append(0)
    return False


def counted(data: Parcel | None, event: Weighed) -> int:
    both_grow(data, event)
    return len(event.weights)


class Sent(Event):
    pass


class Depot(ProcessManager):
    class Step(StrEnum):
        NEW = "New"
        HERE = "Here"
        AWAY = "Away"

    @dataclass(frozen=True)
    class Data:
        weights: list[int]
        count: int = 0

    transitions = (
        during(
            Step.NEW,
            when(Weighed, both_grow).go_to(Step.AWAY),
            when(Weighed).set(count=counted).go_to(Step.HERE),
        ),
        during(
            Step.HERE,
            when(Sent, both_grow).set(count=0).go_to(Step.AWAY),
            when(Sent).go_to(Step.AWAY),
        ),
    )


class Put(Event):
    parcel: Marked


class Shelf(ProcessManager):
    class Step(StrEnum):
        NEW = "New"
        DONE = "Done"

    @dataclass(frozen=True)
    class Data:
        parcel: Parcel

    transitions = (during(Step.NEW, when(Put).go_to(Step.DONE)),)


@dataclass(frozen=True)
class Metres:
    length: int


@dataclass(frozen=True)
class Feet:
    length: int


class Measured(Event):
    length: Metres | Feet
    by_day: dict[str | None, int]


class MeasuredParcel(Workflow):
    flow = (then(wait(Measured, "rule"), due),)


WORKFLOWS = (
    RoutedParcel,
    LiftedParcel,
    AwaitedParcel,
    KeptParcel,
    MarkedParcel,
    DueParcel,
    PlannedParcel,
    GivenParcel,
    MeasuredParcel,
)
