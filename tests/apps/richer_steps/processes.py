"""A parcel service: a reminder after a while, a payment of the right amount, labels in several languages."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator.definition import (
    Event,
    Failure,
    Workflow,
    ask,
    catch,
    each,
    join,
    repeat,
    run,
    sleep,
    step,
    stored,
    then,
    undo,
    wait,
)
from orchestrator.exceptions import TimedOut
from tests.services.declared import declared

DAY = timedelta(days=1)


class Paid(Event):
    order: str
    amount: int
    currency: str = "EUR"


class Yes(StrEnum):
    YES = "yes"


@dataclass(frozen=True)
class Order:
    order: str = "O-1"
    size: int = 1


def price(size: int) -> int:
    return size * 10


def is_large(paid: Paid) -> bool:
    return paid.amount >= 10


def send(order: str) -> str:
    return f"{order} is sent"


def note() -> str:
    return "noted"


def forget(note: str) -> None:
    """Undoes the note."""


class Reminding(Workflow):
    """Goes on after a day."""

    Input = Order
    flow = (then(note, sleep(DAY), send), undo(note, by=forget))


class Napping(Workflow):
    """Sleeps in each round of a loop, and beside a branch that does not."""

    Input = Order

    @staticmethod
    def count(count: int | None) -> int:
        return (count or 0) + 1

    @staticmethod
    def thrice(count: int) -> bool:
        return count == 3

    flow = (
        repeat(sleep(DAY, "nap"), count, until=thrice, at_most=5, then=note),
        join(note, price, into=send),
    )


class Resting(Workflow):
    """Has a sub-process that sleeps."""

    Input = Order
    flow = (then(run(Reminding, "reminding"), ask("sure", Yes)),)


class Paying(Workflow):
    """Takes only the payment of its own order, of its price, in euros or francs."""

    Input = Order
    correlation = "order"
    payment = wait(
        Paid,
        "payment",
        is_large,
        order=stored("order"),
        amount=stored("price"),
        currency=["EUR", "CHF"],
        deadline=DAY,
        late=note,
    )
    flow = (then(price, payment, send),)


class TwoPayments(Workflow):
    """Of two steps that wait side by side each takes what it wants."""

    Input = Order
    flow = (
        join(
            wait(Paid, "euros", currency="EUR"),
            wait(Paid, "francs", currency="CHF"),
            into=send,
        ),
    )


def label(text: str, language: str, copies: int = 1) -> str:
    return f"{language}: {text} x {copies}"


def pages() -> list[int]:
    return [1, 2]


def stamp(item: int, word: str) -> str:
    return f"{item} {word}"


class Labelling(Workflow):
    """One function serves several steps, with other arguments."""

    Input = Order
    german = step(label, "german", args={"text": "Paket", "language": "de"})
    copied = step(
        label,
        "copied",
        args={"text": german, "language": stored("order"), "copies": price},
    )
    flow = (
        then(price, german, copied, pages),
        each(pages, over="", do=step(stamp, "stamp", args={"word": "sent"}), into=send),
    )


def risky(order: str) -> str:
    kinds: dict[str, type[Exception]] = {
        "key": KeyError,
        "connection": ConnectionResetError,
        "value": ValueError,
    }
    if order in kinds:
        raise kinds[order](order)
    return order


def mend(error: Failure) -> str:
    return error.type


class Guarded(Workflow):
    """Several errors go one way."""

    Input = Order
    flow = (
        step(risky, retries=0),
        catch(risky, error=(KeyError, ConnectionError, TimedOut), to=mend),
    )


class Plain(Workflow):
    """Needs no input."""

    flow = (then(note, sleep(DAY)),)


class Collecting(Workflow):
    """Waits for many payments at once, each of a price of its own."""

    Input = Order
    waits_for = (Paid,)

    @staticmethod
    def flow(input: Order) -> list[Any]:
        names = [f"price_{number}" for number in range(input.size)]
        return [
            then(step(price, name), wait(Paid, f"paid_{name}", amount=stored(name)))
            for name in names
        ]


WORKFLOWS = declared(globals())
