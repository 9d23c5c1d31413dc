"""What the examples have none of: each definition is as long, wide or slow as pages must bear."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator import Permanent, handles
from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    StepContext,
    Workflow,
    after,
    during,
    each,
    needs,
    start,
    step,
    then,
    when,
)
from orchestrator.definition.workflow.rows import FlowRow

# A process manager whose names are long


class CreditOpened(Event):
    reference: str
    beneficiary: str


class ConfirmationOfTheCorrespondentBankReceived(Event):
    reference: str
    confirmed_by: str


class DocumentsPresentedThroughTheAdvisingBank(Event):
    reference: str
    pages: int


class ConditionsOfTheCreditAmendedByTheApplicant(Event):
    reference: str
    amendment: str


class RequestConfirmationOfTheCorrespondentBank(Command):
    reference: str
    beneficiary: str


class ReleasePaymentToTheBeneficiary(Command):
    reference: str


NO_ANSWER = (
    "the correspondent bank answered HTTP 422: "
    + "the field 59 (beneficiary) holds a character that its system cannot write; " * 6
    + "受益者名に使用できない文字があります"
)


@handles(RequestConfirmationOfTheCorrespondentBank, after_commit=True)
def request_confirmation(command: RequestConfirmationOfTheCorrespondentBank) -> None:
    """Asks the bank, which cannot write every name."""
    if not command.beneficiary.isascii():
        raise Permanent(NO_ANSWER)


@handles(ReleasePaymentToTheBeneficiary)
def release_payment(command: ReleasePaymentToTheBeneficiary) -> None:
    """Is done by being recorded."""


class LetterOfCreditWithConfirmationAndPresentation(ProcessManager):
    """Has a letter of credit confirmed by a bank in another time zone, and its documents examined."""

    class Step(StrEnum):
        OPENED = "Opened"
        AWAITING_CONFIRMATION = (
            "AwaitingConfirmationOfTheCorrespondentBankInAnotherTimeZone"
        )
        AWAITING_DOCUMENTS = "AwaitingDocuments"
        SETTLED = "SettledOrExpiredWithoutPresentation"

    @dataclass(frozen=True)
    class Data:
        reference: str
        beneficiary: str
        confirmed_by: str = ""
        amendment: str = ""

    correlation = "reference"

    @staticmethod
    def summary(data: Data) -> str:
        return f"{data.beneficiary}, 信用状の確認と書類の呈示"

    transitions = (
        during(
            Step.OPENED,
            when(CreditOpened)
            .issue(RequestConfirmationOfTheCorrespondentBank)
            .go_to(Step.AWAITING_CONFIRMATION),
        ),
        during(
            Step.AWAITING_CONFIRMATION,
            when(ConfirmationOfTheCorrespondentBankReceived)
            .keep("confirmed_by")
            .go_to(Step.AWAITING_DOCUMENTS),
            when(ConditionsOfTheCreditAmendedByTheApplicant)
            .keep("amendment")
            .issue(RequestConfirmationOfTheCorrespondentBank)
            .go_to(Step.AWAITING_CONFIRMATION),
            after(timedelta(hours=36)).escalate(),
        ),
        during(
            Step.AWAITING_DOCUMENTS,
            when(DocumentsPresentedThroughTheAdvisingBank)
            .issue(ReleasePaymentToTheBeneficiary)
            .go_to(Step.SETTLED),
            after(timedelta(days=21)).go_to(Step.SETTLED),
        ),
    )


# Workflows that are wide, long or slow


@dataclass(frozen=True)
class Turbine:
    layers: int
    width: int


def fit(context: StepContext) -> None:
    """Fits one part."""


class TurbineAssembly(Workflow):
    """Fits parts in layers; each stands on two of the layer below."""

    Input = Turbine

    @staticmethod
    def flow(input: Turbine) -> Iterator[FlowRow]:
        below: list[Any] = []
        for layer in range(input.layers):
            parts = [
                step(fit, f"fit_{layer:02}_{part:02}") for part in range(input.width)
            ]
            if not below:
                yield start(*parts)
            for place, part in enumerate(parts if below else ()):
                yield needs(part, [below[place], below[(place + 1) % input.width]])
            below = parts


@dataclass(frozen=True)
class Warehouse:
    name: str
    shelves: int
    missing_every: int
    slow_from: int


@dataclass(frozen=True)
class Shelves:
    labels: list[int]


def list_shelves(shelves: int) -> Shelves:
    return Shelves(list(range(shelves)))


def count_shelf(item: int, missing_every: int, slow_from: int) -> int:
    """Counts what is on a shelf; some are not where they should be, and the far ones take their time."""
    if item % missing_every == missing_every - 1:
        raise Permanent(f"shelf {item} is not where the plan has it")
    if item >= slow_from:
        time.sleep(600)
    return item % 7


def add_up(count_shelf: list[int]) -> int:
    return sum(count_shelf)


class Stocktaking(Workflow):
    """Counts what is on thousands of shelves."""

    Input = Warehouse
    correlation = "name"
    flow = (
        start(list_shelves),
        each(
            list_shelves,
            over="labels",
            do=step(count_shelf, timeout=900),
            into=add_up,
            window=50,
        ),
    )

    @staticmethod
    def summary(input: Warehouse) -> str:
        return f"{input.name}: {input.shelves:,} shelves"


def inspect_hall(context: StepContext) -> None:
    """Walks through a hall, and says how far it is."""
    context.progress(37, 120, "冷却塔 3, north side")
    time.sleep(600)


def ring_up() -> None:
    """Nobody answers."""
    raise ConnectionError("the gate keeper does not answer")


class NightInspection(Workflow):
    """Walks through the halls, and then asks to be let out."""

    flow = (then(step(inspect_hall, timeout=900), ring_up),)


class GateCall(Workflow):
    """Rings up until somebody answers."""

    flow = (then(step(ring_up, retries=8, backoff=600), fit),)
