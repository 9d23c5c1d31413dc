"""A loan is granted or declined, and a ship's course is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.db.models import TextChoices

from orchestrator.definition import Workflow, ask, then
from orchestrator.definition.secrets import secret


class Verdict(TextChoices):
    GRANT = "grant", "Grant it"
    DECLINE = "decline", "Decline it"


class Course(StrEnum):
    NORTH = "north"
    SOUTH = "south"


@dataclass(frozen=True)
class Loan:
    amount: int
    customer: str
    pin: str = secret()


def rate(amount: int) -> str:
    return f"rated {amount // 1000}"


def tell(verdict: Verdict) -> str:
    assert verdict is Verdict(verdict)
    return verdict.label


class Lending(Workflow):
    """Lends money to a customer."""

    name = "lending"
    Input = Loan
    verdict = ask(
        "verdict",
        Verdict,
        help={Verdict.GRANT: "The money is sent today."},
        about=("amount", "rate", "pin"),
        needs_reason=False,
    )
    flow = (then(rate, verdict, tell),)

    @staticmethod
    def summary(given: Loan) -> str:
        return f"Loan for {given.customer}"


def describe(amount: int) -> dict[str, object]:
    return {"of": '東京 "hi"', "paid": amount > 1_000_000}


class Sailing(Workflow):
    """Asks for the course."""

    name = "sailing"
    Input = Loan
    course = ask(
        "course",
        Course,
        labels={Course.NORTH: "To the north"},
        about=("customer", "describe"),
    )
    flow = (then(describe, course),)
