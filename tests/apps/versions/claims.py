"""A claim in two versions: the second asks for another opinion, and calls the first step otherwise."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    after,
    during,
    migrates_from,
    when,
)
from orchestrator.registry import handles

HOUR = timedelta(hours=1)


class ClaimFiled(Event):
    claim: str
    amount: int


class ClaimAssessed(Event):
    claim: str
    amount: int


class SecondOpinionGiven(Event):
    claim: str


class ClaimPaid(Event):
    claim: str


class PayClaim(Command):
    claim: str


class Claim(ProcessManager):
    """A claim is assessed, and paid."""

    class Step(StrEnum):
        FILED = "Filed"
        WITH_ASSESSOR = "WithAssessor"
        AT_THE_BANK = "AtTheBank"
        CLOSED = "Closed"

    @dataclass(frozen=True)
    class Data:
        claim: str
        amount: int

    correlation = "claim"
    outside_ids = ("claim",)

    transitions = (
        during(Step.FILED, when(ClaimFiled).go_to(Step.WITH_ASSESSOR)),
        during(
            Step.WITH_ASSESSOR,
            when(ClaimAssessed).issue(PayClaim).go_to(Step.AT_THE_BANK),
            after(2 * HOUR).escalate(),
        ),
        during(Step.AT_THE_BANK, when(ClaimPaid).go_to(Step.CLOSED)),
    )


def in_cents(data: dict[str, Any]) -> dict[str, Any]:
    """Amounts were whole, and are in cents now."""
    whole = data.pop("amount")
    return {**data, "cents": whole * 100, "currency": "EUR"}


class ClaimInCents(ProcessManager):
    """A claim is assessed, seen by a second person, and paid."""

    class Step(StrEnum):
        FILED = "Filed"
        BEING_ASSESSED = "BeingAssessed"
        SEEN_TWICE = "SeenTwice"
        AT_THE_BANK = "AtTheBank"
        CLOSED = "Closed"

    @dataclass(frozen=True)
    class Data:
        claim: str
        cents: int = 0
        currency: str = "EUR"

    name = Claim.name
    version = 2
    correlation = "claim"
    outside_ids = ("claim", "currency")
    migrations = (
        migrates_from(1, steps={"WithAssessor": Step.BEING_ASSESSED}, data=in_cents),
    )

    transitions = (
        during(Step.FILED, when(ClaimFiled).go_to(Step.BEING_ASSESSED)),
        during(
            Step.BEING_ASSESSED,
            when(ClaimAssessed).go_to(Step.SEEN_TWICE),
            after(HOUR).escalate(),
            after(3 * HOUR).escalate(),
        ),
        during(
            Step.SEEN_TWICE,
            when(SecondOpinionGiven).issue(PayClaim).go_to(Step.AT_THE_BANK),
        ),
        during(Step.AT_THE_BANK, when(ClaimPaid).go_to(Step.CLOSED)),
    )


class ClaimWithoutAssessor(ProcessManager):
    """The first version as somebody has changed it under the same number: nobody assesses."""

    class Step(StrEnum):
        FILED = "Filed"
        AT_THE_BANK = "AtTheBank"
        CLOSED = "Closed"

    Data = Claim.Data
    name = Claim.name
    correlation = "claim"
    outside_ids = ("claim",)

    transitions = (
        during(Step.FILED, when(ClaimFiled).go_to(Step.AT_THE_BANK)),
        during(Step.AT_THE_BANK, when(ClaimPaid).go_to(Step.CLOSED)),
    )


paid: list[str] = []
"""The claims that were paid, in their order."""


@handles(PayClaim, after_commit=True)
def pay(command: PayClaim) -> None:
    paid.append(command.claim)
