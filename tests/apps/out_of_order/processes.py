"""A process whose steps take each event in one place only, so that any order of arrival leads to the same end."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import Event, ProcessManager, during, stored, when


class CarOrdered(Event):
    car: str


class PartFitted(Event):
    """Parts are fitted by their numbers, counted from 1."""

    car: str
    number: int
    last: bool = False


class CarPainted(Event):
    car: str


class CarInspected(Event):
    car: str


class CarCollected(Event):
    car: str


def the_following_number(data: object, event: PartFitted) -> int:
    return event.number + 1


class CarBuilding(ProcessManager):
    """Builds a car, part by part."""

    class Step(StrEnum):
        NEW = "New"
        FITTING = "Fitting"
        PAINTING = "Painting"
        INSPECTION = "Inspection"
        READY = "Ready"
        COLLECTED = "Collected"

    @dataclass(frozen=True)
    class Data:
        car: str
        following: int = 1

    correlation = "car"

    transitions = (
        during(Step.NEW, when(CarOrdered).go_to(Step.FITTING)),
        during(
            Step.FITTING,
            when(PartFitted, number=stored("following"), last=False).set(
                following=the_following_number
            ),
            when(PartFitted, number=stored("following"), last=True).go_to(
                Step.PAINTING
            ),
        ),
        during(Step.PAINTING, when(CarPainted).go_to(Step.INSPECTION)),
        during(Step.INSPECTION, when(CarInspected).go_to(Step.READY)),
        during(Step.READY, when(CarCollected).go_to(Step.COLLECTED)),
    )
