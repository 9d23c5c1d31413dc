"""A payment that is confirmed by a code, and an enrolment with a password. Their code tells all that it knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    StepContext,
    Workflow,
    during,
    each,
    secret,
    stored,
    when,
)

HUSH = "hush-7f3a"
"""Stands in every secret, so that it can be looked for."""

NUMBER = f"4111-{HUSH}"
PIN = f'"{HUSH}\\n秘密の言葉'
CODE = f"{HUSH}/code & more"
PASSWORD = f"{HUSH}-password-that-is-so-long-that-messages-cut-it-somewhere"
DIGEST = f"{HUSH}-digest"


@dataclass(frozen=True)
class Card:
    number: str = secret()
    holder: str = ""


class PaymentAsked(Event):
    payment: str
    amount: int
    card: Card
    pin: str = secret()
    code: str = secret()


class CodeEntered(Event):
    payment: str
    answer: str


class Charged(Event):
    payment: str
    receipt: str = ""


class ChargeCard(Command):
    """Its field has another name than the secret that fills it."""

    payment: str
    passphrase: str
    card: Card


class PayStep(StrEnum):
    NEW = "New"
    CONFIRMING = "Confirming"
    CHARGING = "Charging"
    PAID = "Paid"


@dataclass(frozen=True)
class PaymentData:
    payment: str
    amount: int
    card: Card
    pin: str = secret()
    code: str = secret()
    receipt: str = ""


class CardPayment(ProcessManager):
    """Asks for a code, and charges the card."""

    Step, Data, correlation = PayStep, PaymentData, "payment"

    transitions = [
        during(PayStep.NEW, when(PaymentAsked).go_to(PayStep.CONFIRMING)),
        during(
            PayStep.CONFIRMING,
            when(CodeEntered, answer=stored("code"))
            .issue(ChargeCard, passphrase="pin")
            .go_to(PayStep.CHARGING),
        ),
        during(PayStep.CHARGING, when(Charged).go_to(PayStep.PAID)),
    ]

    @staticmethod
    def summary(data: PaymentData) -> str:
        return f"{data.amount} from {data.card.number} with {data.pin}"


def charge(command: ChargeCard) -> None:
    """Has nobody to charge."""
    raise ConnectionError(
        f"no bank takes {command.card.number} with {command.passphrase!r}"
    )


def tell(event: PaymentAsked) -> None:
    """Has nobody to tell."""
    raise ConnectionError(f"nobody listens to {event.card} and {event.pin}")


@dataclass(frozen=True)
class Person:
    person: str
    password: str = secret()
    ok: bool = False


@dataclass(frozen=True)
class Hashed:
    person: str
    digest: str = secret()
    answers: list[str] = secret(default_factory=list)
    salts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answered:
    answer: str = secret()


def hash_password(person: str, password: str, context: StepContext) -> Hashed:
    context.progress(1, 2, f"hashing {password}")
    return Hashed(person, f"{DIGEST} of {person}", [f"{HUSH}-1", f"{HUSH}-2"], ["salt"])


def keep_answer(item: str) -> Answered:
    return Answered(item)


def enrol(person: str, password: str, ok: bool, hash_password: Hashed) -> str:
    digest = hash_password.digest
    if not ok:
        raise ValueError(f"{person} with {password} ({password[:30]}...) has {digest}")
    return person


class Enrolment(Workflow):
    """Fails, and says of what."""

    Input, correlation = Person, "person"
    flow = (each(hash_password, over="answers", do=keep_answer, into=enrol),)

    @staticmethod
    def summary(input: Person) -> str:
        return f"{input.person} with {input.password}"
