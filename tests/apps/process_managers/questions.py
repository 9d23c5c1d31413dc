"""A process that asks again and again; only the answer to its latest question counts."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import Event, ProcessManager, during, ignore, stored, when


class Asked(Event):
    number: int
    who: str = "Ann"


class Answered(Event):
    number: int


class Again(Event):
    pass


class Thanked(Event):
    pass


class Enquiry(ProcessManager):
    """Waits for the answer to the question that was asked last, and then for thanks."""

    class Step(StrEnum):
        NEW = "New"
        ASKING = "Asking"
        ANSWERED = "Answered"
        OVER = "Over"

    @dataclass(frozen=True)
    class Data:
        number: int
        who: str = "Ann"

    correlation = "who"

    transitions = (
        during(Step.NEW, when(Asked).go_to(Step.ASKING)),
        during(
            Step.ASKING,
            when(Answered, number=stored("number")).go_to(Step.ANSWERED),
            when(Asked),
        ),
        during(Step.ANSWERED, when(Thanked).go_to(Step.OVER), ignore(Again)),
    )
