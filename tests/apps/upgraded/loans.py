"""Loans and their checks."""

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
from orchestrator.definition.workflow.rows import FlowRow


class Asked(Event):
    loan: str
    euros: int


class Signed(Event):
    loan: str
    by: str


class Paid(Event):
    loan: str
    at: str


class PayOut(Command):
    loan: str
    euros: int


class Loan(ProcessManager):
    name = "loan"

    class Step(StrEnum):
        NEW = "New"
        ASKED = "Asked"
        SIGNED = "Signed"
        PAID = "Paid"

    @dataclass(frozen=True)
    class Data:
        loan: str
        euros: int

    correlation = "loan"
    transitions = (
        during(Step.NEW, when(Asked).go_to(Step.ASKED)),
        during(
            Step.ASKED,
            when(Signed).issue(PayOut).go_to(Step.SIGNED),
            after(timedelta(days=1)).escalate(),
        ),
        during(Step.SIGNED, when(Paid).go_to(Step.PAID)),
    )


class Rated(Event):
    points: int


@dataclass(frozen=True)
class Report:
    points: int


def look(loan: str) -> Report:
    return Report(1)


def rate(rating: Rated, look: Report) -> int:
    return rating.points


DAY = timedelta(days=1)
rating = wait(Rated, "rating", gives="rating", deadline=DAY)


class Check(Workflow):
    name = "check"

    @dataclass(frozen=True)
    class Input:
        loan: str

    flow = (then(look, rating, step(rate)),)


def tell(loan: str) -> None:
    """Tell the customer."""


def ask(loan: str) -> None:
    """Ask the customer."""


class Letters(Workflow):
    name = "letters"

    @dataclass(frozen=True)
    class Terms:
        loan: str

    Input = Terms
    waits_for = (Rated,)

    @staticmethod
    def flow(terms: "Letters.Terms") -> list[FlowRow]:
        return [then(ask, wait(Rated, "answer", gives="answer"), tell)]
